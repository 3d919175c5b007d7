package seqprop

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// results runs the engine and returns a table by its name.
func results(t *testing.T, fasta string) (dir string, table func(name string) [][]string) {
	t.Helper()
	dir = t.TempDir()
	var log bytes.Buffer
	if err := Run(t.Context(), []byte(fasta), Options{PH: 7.4, Window: 5}, dir, &log); err != nil {
		t.Fatal(err)
	}
	return dir, func(name string) [][]string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
}

func metrics(t *testing.T, dir string) (m map[string]float64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "metrics.json"))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestResultsOfOneSequence(t *testing.T) {
	dir, table := results(t, ">sp|P37840|SYUA_HUMAN Alpha-synuclein\n"+synuclein+"\n")
	m := metrics(t, dir)
	if m["length"] != 140 || m["sequences"] != 1 || m["kappa"] != 0.1717 {
		t.Error(m)
	}
	rows := table("properties.csv")
	if len(rows) != 2 || rows[1][0] != "sp_P37840_SYUA_HUMAN" || rows[1][2] != "14459.99" {
		t.Error(rows)
	}
	windows := table("profiles/sp_P37840_SYUA_HUMAN.csv")
	want := [][]string{
		{"position", "residue", "hydropathy", "ncpr", "fcr"},
		{"1", "M", "", "", ""},
		{"2", "D", "", "", ""},
		{"3", "V", "1.4600", "-0.2000", "0.2000"}, // MDVFM
	}
	if diff := cmp.Diff(want, windows[:4]); diff != "" {
		t.Error(diff)
	}
	if len(windows) != 141 || windows[139][2] != "" || windows[138][2] == "" {
		t.Error(windows[138:])
	}
}

func TestResultsOfSeveralSequences(t *testing.T) {
	dir, table := results(t, ">a\nGGGGKXE\n>A\nMKV*\n>..\n>\nGG\n")
	if diff := cmp.Diff(map[string]float64{"sequences": 4}, metrics(t, dir)); diff != "" {
		t.Error(diff)
	}
	var named []string
	for _, row := range table("properties.csv")[1:] {
		named = append(named, row[0]+" "+row[1]+" "+row[len(row)-1])
	}
	want := []string{
		"a 7 only the length: X at position 6 is not one of the twenty amino acids",
		"A_2 3 no kappa: it needs 6 residues and charges of both signs; no disorder: it needs 30 residues",
		"sequence 0 empty",
		"sequence_2 2 no kappa: it needs 6 residues and charges of both signs; no disorder: it needs 30 residues",
	}
	if diff := cmp.Diff(want, named); diff != "" {
		t.Error(diff)
	}
	windows := table("profiles/a.csv")
	if windows[3][2] != "-1.1000" || windows[4][2] != "" {
		t.Error(windows)
	}
	composed := table("composition.csv")
	if got := strings.Join(composed[2], " "); !strings.HasPrefix(got, "A_2 0.000 0.000") || composed[2][9] != "33.333" {
		t.Error(got)
	}
	if composed[3][1] != "" {
		t.Error(composed[3])
	}
}

func TestNothingIsRefused(t *testing.T) {
	if err := Run(t.Context(), []byte("\n"), Options{PH: 7, Window: 5}, t.TempDir(), os.Stderr); err == nil {
		t.Error("no sequence gave results")
	}
}
