package results

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"molrun/app/base/tomltree"
	"molrun/app/test/must"
)

func TestMetricsOfTablesAndJSON(t *testing.T) {
	const hits = "query\ttarget\tevalue\tbits\nq\ta\t1e-5\t50\nq\tb\t1e-30\t250\nr\tc\t0.5\tNA\n"
	const pdb = "MODEL        1\n" +
		"ATOM      1  N   ALA A   1      11.104   6.134  -6.504  1.00 10.00           N\n" +
		"ATOM      2  CA  ALA A   1      11.639   6.071  -5.147  1.00 80.00           C\n" +
		"ATOM      3  CA  GLY A   2      11.639   6.071  -5.147  1.00 90.00           C\n" +
		"HETATM    4 CA    CA A   3      11.639   6.071  -5.147  1.00  1.00          CA\nENDMDL\n" +
		"ATOM      2  CA  ALA A   1      11.639   6.071  -5.147  1.00  0.00           C\n"
	files := map[string]string{
		"hits.tsv": hits, "none.tsv": "", "head.tsv": "a\tb\n",
		"bare.txt": "1 2\n3 4\n", "names.csv": "name,score\nAla,3\nGly,1\n",
		"log":               "step 1\nstep 2\nend",
		"long":              strings.Repeat("# a comment of many letters\n", 100_000) + strings.Repeat("hit\n", 100_000) + "hit",
		"s_rank_001_a.json": `{"ptm":0.71,"plddt":[90,80.5,[70]],"ok":true,"deep":[{"a/b":{"c~d":5}}],"none":null,"list":[],"words":["a"]}`,
		"s_rank_002_a.json": `{"ptm":0.1}`,
		"nan.json":          `{"ptm":NaN}`,
		"model.pdb":         pdb, "atoms.pdb": strings.ReplaceAll(pdb, " CA ", " CB "), "bad.pdb": strings.ReplaceAll(pdb, "80.00", "  nan"), "empty.pdb": "END\n",
	}
	tests := []struct {
		name, metric, want, problem string
	}{
		{"matches", `file = "log", count = '(?m)^step'`, "2", ""},
		{"no matches", `file = "log", count = 'nothing'`, "0", ""},
		{"matches of a long file", `file = "long", count = '(?m)^hit$'`, "100001", ""},
		{"matches of no file", `file = "gone", count = 'x'`, "", "file does not exist"},
		{"first", `table = "hits.tsv", column = "evalue"`, "0.00001", ""},
		{"last", `table = "hits.tsv", column = "evalue", take = "last"`, "0.5", ""},
		{"least", `table = "hits.tsv", column = "evalue", take = "min"`, "1e-30", ""},
		{"most, without what is no number", `table = "hits.tsv", column = "bits", take = "max"`, "250", ""},
		{"mean", `table = "hits.tsv", column = "bits", take = "mean"`, "150", ""},
		{"sum", `table = "hits.tsv", column = "bits", take = "sum"`, "300", ""},
		{"rows", `table = "hits.tsv", take = "count"`, "3", ""},
		{"some rows", `table = "hits.tsv", take = "count", where = { query = "q" }`, "2", ""},
		{"of some rows", `table = "hits.tsv", column = "bits", take = "min", where = { query = "q", target = "b" }`, "250", ""},
		{"of no rows", `table = "hits.tsv", column = "bits", take = "min", where = { query = "z" }`, "", "there are no numbers"},
		{"rows of nothing", `table = "none.tsv", take = "count"`, "0", ""},
		{"rows below a header", `table = "head.tsv", take = "count"`, "0", ""},
		{"no such column", `table = "hits.tsv", column = "score"`, "", `has no column "score"; it has query, target`},
		{"no such column to choose by", `table = "hits.tsv", column = "bits", where = { chain = "A" }`, "", `has no column "chain"`},
		{"column by number", `table = "bare.txt", column = "2", take = "sum"`, "6", ""},
		{"a text", `table = "names.csv", column = "name"`, `"Ala"`, ""},
		{"the last text", `table = "names.csv", column = "name", take = "last"`, `"Gly"`, ""},
		{"a member", `json = "s_rank_001_*.json", at = "/ptm"`, "0.71", ""},
		{"first of several files", `json = "s_rank_*.json", at = "/ptm"`, "0.71", ""},
		{"true", `json = "s_rank_001_a.json", at = "/ok"`, "true", ""},
		{"escaped", `json = "s_rank_001_a.json", at = "/deep/0/a~1b/c~0d"`, "5", ""},
		{"mean of a list", `json = "s_rank_001_a.json", at = "/plddt", take = "mean"`, "80.16666666666667", ""},
		{"least of a list", `json = "s_rank_001_a.json", at = "/plddt", take = "min"`, "70", ""},
		{"a list", `json = "s_rank_001_a.json", at = "/plddt"`, "", "use take to reduce a list"},
		{"mean of nothing", `json = "s_rank_001_a.json", at = "/list", take = "mean"`, "", "there are no numbers"},
		{"count of words", `json = "s_rank_001_a.json", at = "/words", take = "count"`, "1", ""},
		{"null", `json = "s_rank_001_a.json", at = "/none"`, "", "no single value"},
		{"no member", `json = "s_rank_001_a.json", at = "/iptm/0"`, "", "has no /iptm"},
		{"beyond a list", `json = "s_rank_001_a.json", at = "/plddt/9"`, "", "has no /plddt/9"},
		{"NaN", `json = "nan.json", at = "/ptm"`, "", "is not valid JSON"},
		{"of 100", `json = "s_rank_001_a.json", at = "/ptm", factor = 100`, "71", ""},
		{"B factors of residues", `bfactor = "model.pdb"`, "85", ""},
		{"B factors of atoms", `bfactor = "atoms.pdb", take = "max"`, "90", ""},
		{"B factor that is none", `bfactor = "bad.pdb"`, "", "without a B factor"},
		{"B factors of nothing", `bfactor = "empty.pdb"`, "", "there are no numbers"},
	}
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			metrics := read(t, ReadMetrics, "[metrics]\nx = { "+tt.metric+" }\n")
			got, problems := metrics.ReadMetrics(out)
			want := ""
			if tt.want != "" {
				want = `{"x":` + tt.want + `}`
			}
			if string(got) != want {
				t.Errorf("figures %s, want %s", got, want)
			}
			if (tt.problem != "") != (len(problems) == 1) || tt.problem != "" && !strings.Contains(problems[0], tt.problem) {
				t.Errorf("problems %q, want %q", problems, tt.problem)
			}
		})
	}
}

// A mean pLDDT is on a scale of 0 to 100, as the viewer shows it, whatever the scale of
// the file.
func TestBFactorsFollowTheScaleOfTheirView(t *testing.T) {
	atom := func(b string) string {
		return "ATOM      2  CA  ASP A   1       2.280   0.000   0.000  1.00  " + b + "           C\n"
	}
	for _, tt := range []struct{ plddt, bs, want string }{
		{"plddt = { scale = 1 }", "0.91", "91"},
		{"plddt = {}", "0.91", "91"},
		{"plddt = {}", "91.0", "91"},
		{"plddt = { scale = 100 }", "0.91", "0.91"},
		{"", "0.91", "0.91"},
	} {
		text := "[metrics]\nx = { bfactor = \"a.pdb\" }\n[[outputs]]\nname = \"s\"\nfile = \"*.pdb\"\n[[views]]\nname = \"s\"\nkind = \"structure\"\nfile = \"*.pdb\"\n" + tt.plddt + "\n"
		metrics := read(t, ReadMetrics, text)
		metrics.ApplyScales(read(t, func(r *tomltree.Reader) Views { return ReadViews(r, ReadOutputs(r)) }, text))
		got, problems := metrics.ReadMetrics(fstest.MapFS{"a.pdb": &fstest.MapFile{Data: []byte(atom(tt.bs))}})
		if want := `{"x":` + tt.want + `}`; string(got) != want || problems != nil {
			t.Errorf("%s, %s: %s, %v; want %s", tt.plddt, tt.bs, got, problems, want)
		}
	}
}

func TestRequiredOutputs(t *testing.T) {
	outputs := read(t, ReadOutputs, `
[[outputs]]
name = "poses"
title = "Docked poses"
file = "poses*.pdbqt"
required = true
[[outputs]]
name = "report"
file = "report.txt"
`)
	tests := []struct {
		files map[string]int64
		want  string
	}{
		{map[string]int64{"poses_1.pdbqt": 5}, ""},
		{map[string]int64{"poses_1.pdbqt": 0, "poses_2.pdbqt": 1}, ""},
		{map[string]int64{"poses_1.pdbqt": 0}, "The program finished, but Docked poses (poses*.pdbqt) is empty."},
		{map[string]int64{"deep/poses.pdbqt": 5}, "The program finished, but did not create Docked poses (poses*.pdbqt)."},
	}
	for _, tt := range tests {
		got := outputs.Missing(func(yield func(string, int64) bool) {
			for name, size := range tt.files {
				if !yield(name, size) {
					return
				}
			}
		})
		must.Equal(t, fmt.Sprintf("%v", tt.files), got, tt.want)
	}
}
