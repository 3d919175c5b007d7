package cgidp_test

import (
	"fmt"

	"molrun/app/engine/cgidp"
)

func ExampleParse() {
	_, faults := cgidp.Parse([]byte(`{"sequences": ["DSHAKRHHGYKRXF"], "names": ["Hst5"], "temperature": 293, "steps": 100}`), nil)
	for _, f := range faults {
		fmt.Println(f.Loc, f.Msg)
	}
	// Output:
	// [temperature] unknown setting "temperature"; did you mean "temperature_K"?
	// [sequences 0] sequence "Hst5", position 13: 'X' is not an amino acid; X stands for an unknown residue: fill it in or cut it out
	// [steps] steps is 100; choose between 1000 and 2000000000
}
