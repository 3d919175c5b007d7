package cgidp

import (
	"encoding/csv"
	"os"
	"strconv"
	"testing"
)

// protein is a row of testdata/reference_rg.csv.
type protein struct {
	sequence    string
	conditions  conditions
	rg, rgError float64 // published CALVADOS 2 value, nm; 0 if there is none
}

func referenceProtein(t testing.TB, name string) protein {
	t.Helper()
	file, err := os.Open("testdata/reference_rg.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row[0] == name {
			return protein{
				sequence: row[1],
				conditions: conditions{
					temperature:    parse(t, row[3]),
					pH:             parse(t, row[4]),
					ionicStrength:  parse(t, row[5]),
					friction:       limitFriction.preset,
					chargedTermini: true,
				},
				rg:      parse(t, row[8]),
				rgError: parse(t, row[10]),
			}
		}
	}
	t.Fatalf("no protein %q", name)
	return protein{}
}

func parse(t testing.TB, text string) float64 {
	t.Helper()
	if text == "" {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (p protein) model() *model { return newModel(p.sequence, p.conditions) }

func (p protein) dynamics(t testing.TB) *dynamics {
	t.Helper()
	d, err := newDynamics(p.model(), newSource(1, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func advance(t testing.TB, d *dynamics, steps int) {
	t.Helper()
	if err := d.advance(steps); err != nil {
		t.Fatal(err)
	}
}
