package seqprop

import (
	"io"
	"strings"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// results runs the engine and returns its output folder.
func results(t *testing.T, fasta string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	must.OK(t, Run(t.Context(), []byte(fasta), Options{PH: 7.4, Window: 5}, dir, io.Discard))
	return dir
}

func metrics(t *testing.T, dir string) map[string]float64 {
	t.Helper()
	return enginetest.ReadJSON[map[string]float64](t, dir, "metrics.json")
}

func TestResultsOfOneSequence(t *testing.T) {
	dir := results(t, ">sp|P37840|SYUA_HUMAN Alpha-synuclein\n"+synuclein+"\n")
	m := metrics(t, dir)
	if m["length"] != 140 || m["sequences"] != 1 || m["kappa"] != 0.1717 {
		t.Error(m)
	}
	rows := enginetest.ReadCSV(t, dir, "properties.csv")
	if len(rows) != 2 || rows[1][0] != "sp_P37840_SYUA_HUMAN" || rows[1][2] != "14459.99" {
		t.Error(rows)
	}
	windows := enginetest.ReadCSV(t, dir, "profiles/sp_P37840_SYUA_HUMAN.csv")
	want := [][]string{
		{"position", "residue", "hydropathy", "ncpr", "fcr"},
		{"1", "M", "", "", ""},
		{"2", "D", "", "", ""},
		{"3", "V", "1.4600", "-0.2000", "0.2000"}, // MDVFM
	}
	must.Equal(t, "first windows", windows[:4], want)
	if len(windows) != 141 || windows[139][2] != "" || windows[138][2] == "" {
		t.Error(windows[138:])
	}
}

func TestResultsOfSeveralSequences(t *testing.T) {
	dir, log := t.TempDir(), new(strings.Builder)
	must.OK(t, Run(t.Context(), []byte(">a\nGGGGKXE\n>A\nMKV*\n>..\n>\nGG\n"), Options{PH: 7.4, Window: 5}, dir, log))
	must.Equal(t, "warnings", strings.Count(log.String(), "molrun:warning "), 2) // for the sequences without results
	must.Equal(t, "metrics", metrics(t, dir), map[string]float64{"sequences": 4})
	var named []string
	for _, row := range enginetest.ReadCSV(t, dir, "properties.csv")[1:] {
		named = append(named, row[0]+" "+row[1]+" "+row[len(row)-1])
	}
	want := []string{
		"a 7 only the length: X at position 6 is not one of the twenty amino acids",
		"A_2 3 no kappa: it needs 6 residues and charges of both signs; no disorder: it needs 30 residues",
		"sequence 0 empty",
		"sequence_2 2 no kappa: it needs 6 residues and charges of both signs; no disorder: it needs 30 residues",
	}
	must.Equal(t, "names and notes", named, want)
	windows := enginetest.ReadCSV(t, dir, "profiles/a.csv")
	if windows[3][2] != "-1.1000" || windows[4][2] != "" {
		t.Error(windows)
	}
	composed := enginetest.ReadCSV(t, dir, "composition.csv")
	if got := strings.Join(composed[2], " "); !strings.HasPrefix(got, "A_2 0.000 0.000") || composed[2][9] != "33.333" {
		t.Error(got)
	}
	if composed[3][1] != "" {
		t.Error(composed[3])
	}
}

func TestNothingIsRefused(t *testing.T) {
	if err := Run(t.Context(), []byte("\n"), Options{PH: 7, Window: 5}, t.TempDir(), io.Discard); err == nil {
		t.Error("no sequence gave results")
	}
}
