package remote

import (
	"encoding/json"
	"testing"

	"molrun/app/client"
	"molrun/app/test/must"
)

func TestValuesHaveTheDigitsOfTheirErrors(t *testing.T) {
	var cases []struct {
		Value, Error float64
		Digits       *int
		Text         string
	}
	must.OK(t, json.Unmarshal([]byte(must.Read(t, "../../client/python/tests/figures.json")), &cases))
	for _, c := range cases {
		must.Equal(t, c.Text, measured(c.Value, c.Error, c.Digits), c.Text)
	}
}

func TestFiguresAreShownAsTheAlgorithmSays(t *testing.T) {
	from := 0.5
	metrics := []client.TableColumn{
		{Name: "tm", Title: "TM-score", Reading: []client.Reading{{Words: "another fold"}, {From: &from, Words: "same fold"}}},
		{Name: "rg", Title: "Radius", Unit: "nm"},
		{Name: "rg_se", Title: "Error of the radius", Unit: "nm", ErrorOf: "rg"},
		{Name: "nu_se", Title: "Error of nu", ErrorOf: "nu"},
	}
	all := map[string]any{"other": true, "rg_se": json.Number("0.0143"), "rg": json.Number("1.3244"), "tm": json.Number("0.94"), "nu_se": json.Number("0.1"), "nu": nil}
	must.Equal(t, "figures", plainMetrics(all, metrics), [][2]string{{"TM-score", "0.94: same fold"}, {"Radius", "1.324 ± 0.014 nm"}, {"Error of nu", "0.1"}, {"other", "true"}})
}
