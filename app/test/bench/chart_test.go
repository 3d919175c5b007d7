package main

import (
	"encoding/xml"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestChartIsXMLWithALineForEachCost(t *testing.T) {
	series := [][]point{
		{{1e3, .3}, {1e4, .3}, {1e6, .31}},
		{{1e3, 20}, {1e4, 200}, {1e6, 20000}},
		{{1e3, 0}},
	}
	svg := drawChart([]string{"a page", "a backup <all>", "nothing"}, series)
	must.OK(t, xml.Unmarshal(svg, new(struct{})))
	if lines := strings.Count(string(svg), "<polyline"); lines != len(series) {
		t.Errorf("%d lines, want %d: %s", lines, len(series), svg)
	}
	for _, want := range []string{">1,000<", ">1,000,000<", ">0.1<", "a backup &lt;all&gt;"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the chart lacks %s", want)
		}
	}
	if strings.Contains(string(svg), "NaN") || strings.Contains(string(svg), "Inf") || strings.Contains(string(svg), "%!") {
		t.Errorf("the chart has invalid numbers: %s", svg)
	}
}
