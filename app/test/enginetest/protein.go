package enginetest

import (
	_ "embed"
	"encoding/csv"
	"strconv"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// Protein is a row of reference_rg.csv.
type Protein struct {
	Sequence      string
	Temperature   float64 // K
	PH            float64
	IonicStrength float64 // mol/L
	Rg, RgError   float64 // published CALVADOS 2 value, nm; 0 if unpublished
}

//go:embed reference_rg.csv
var reference string

// ReferenceProtein returns the protein with the given name.
func ReferenceProtein(t testing.TB, name string) Protein {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(reference)).ReadAll()
	must.OK(t, err)
	for _, row := range rows {
		if row[0] == name {
			return Protein{
				Sequence:      row[1],
				Temperature:   Parse(t, row[3]),
				PH:            Parse(t, row[4]),
				IonicStrength: Parse(t, row[5]),
				Rg:            Parse(t, row[8]),
				RgError:       Parse(t, row[10]),
			}
		}
	}
	t.Fatalf("no protein %q", name)
	return Protein{}
}

// Parse parses a number from a table. An empty field is 0.
func Parse(t testing.TB, text string) float64 {
	t.Helper()
	if text == "" {
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	must.OK(t, err)
	return v
}
