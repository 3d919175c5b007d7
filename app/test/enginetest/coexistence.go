package enginetest

import (
	_ "embed"
	"encoding/csv"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// Coexistence is a row of reference_coexistence.csv: the published concentrations of the
// two phases of a condensate of 100 chains in this model.
type Coexistence struct {
	Name, Sequence      string
	Temperature         float64 // K
	IonicStrength       float64 // mol/L
	PH                  float64
	Dilute, DiluteError float64 // mmol/L
	Dense, DenseError   float64 // mmol/L
}

//go:embed reference_coexistence.csv
var coexistence string

// Coexistences returns all rows of reference_coexistence.csv.
func Coexistences(t testing.TB) []Coexistence {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(coexistence)).ReadAll()
	must.OK(t, err)
	var all []Coexistence
	for _, row := range rows[1:] {
		all = append(all, Coexistence{
			Name: row[0], Sequence: row[2],
			Temperature: Parse(t, row[3]), IonicStrength: Parse(t, row[4]), PH: Parse(t, row[5]),
			Dilute: Parse(t, row[6]), DiluteError: Parse(t, row[7]),
			Dense: Parse(t, row[8]), DenseError: Parse(t, row[9]),
		})
	}
	return all
}
