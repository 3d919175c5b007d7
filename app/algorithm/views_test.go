package algorithm

import (
	"fmt"
	"strings"
	"testing"
)

func TestViewsMatchFiles(t *testing.T) {
	tests := []struct {
		file, topology, path, want string // want is the topology, or "" for no match
	}{
		{"a.xtc", "top.pdb", "a.xtc", "top.pdb"},
		{"a.xtc", "top.pdb", "b/a.xtc", ""},
		{"a.xtc", "top.pdb", "a_xtc", ""},
		{"*.xtc", "*.pdb", "run 1.xtc", "run 1.pdb"},
		{"*.xtc", "*.pdb", "dir/run.xtc", ""},
		{"*.xtc", "*.pdb", ".xtc", ".pdb"},
		{"*.xtc", "*.pdb", ".a.xtc", ""},
		{"*.xtc", "*.pdb", "a*b\n.xtc", "a*b\n.pdb"},
		{"*/traj*.dcd", "*/top.pdb", "Hst5/traj_r2.dcd", "Hst5/top.pdb"},
		{"*/traj*.dcd", "*/*.pdb", "a*/traj*.dcd", "a*/*.pdb"},
		{"*/traj*.dcd", "*/top.pdb", ".x/traj.dcd", ""},
		{"run*/*.xtc", "top*.pdb", "run7/a.xtc", "top7.pdb"},
	}
	for _, tt := range tests {
		a, mistakes := Parse("a.toml", []byte(`format = 1
type = "a"
version = "1"
command = ["true"]
[[outputs]]
name = "files"
file = "`+tt.file+`"
[[outputs]]
name = "topologies"
file = "`+tt.topology+`"
[[views]]
name = "v"
kind = "trajectory"
file = "`+tt.file+`"
topology = "`+tt.topology+`"
`))
		if len(mistakes) > 0 {
			t.Fatal(mistakes)
		}
		if got, ok := a.Views.Named("v").Match(tt.path); ok != (tt.want != "") || got != tt.want {
			t.Errorf("%s with %s, of %q: %q, %v; want %q", tt.file, tt.topology, tt.path, got, ok, tt.want)
		}
	}
}

func TestMistakesInViews(t *testing.T) {
	const head = "format = 1\ntype = \"a\"\nversion = \"1\"\ncommand = [\"true\"]\n"
	view := func(rest string) string { return "[[views]]\nname = \"v\"\nkind = \"series\"\n" + rest }
	tests := []struct{ name, views, want string }{
		{"nothing", "[[views]]\n", "kind is missing in [[views]]"},
		{"unknown kind", "[[views]]\nname = \"v\"\nkind = \"movie\"\nfile = \"a\"\n", `kind must be`},
		{"the same name", view("file = \"a\"\n") + view("file = \"b\"\n"), `two views are named "v"; give each a unique name`},
		{"absolute", view("file = \"/a.csv\"\n"), `file "/a.csv" must be a path below the output folder`},
		{"above", view("file = \"../a.csv\"\n"), "must be a path below the output folder"},
		{"empty", view("file = \"\"\n"), "must be a path below the output folder"},
		{"a folder", view("file = \"a/\"\n"), "must be a path below the output folder"},
		{"the service's log", view("file = \"log.txt\"\n"), `file "log.txt" is reserved for molrun`},
		{"other wildcards", view("file = \"a?.csv\"\n"), "can contain * in names, but no other wildcards"},
		{"any depth", view("file = \"**/a.csv\"\n"), "a * does not match a /"},
		{"too long", view("file = \"" + strings.Repeat("a", 256) + "\"\n"), "is longer than the paths of a result can be"},
		{"too deep", view("file = \"" + strings.Repeat("a/", 64) + "a\"\n"), "is longer than the paths of a result can be"},
		{"topology of a series", view("file = \"a\"\ntopology = \"b\"\n"), "topology applies to trajectory, not to series"},
		{"unit of a series", view("file = \"a\"\nunit = \"nm\"\n"), "unit applies to matrix, not to series"},
		{"units of a structure", "[[views]]\nname = \"v\"\nkind = \"structure\"\nfile = \"a\"\nunits = { a = \"nm\" }\n", "units applies to series and table, not to structure"},
		{"pLDDT of a series", view("file = \"a\"\nplddt = {}\n"), "plddt applies to structure, not to series"},
		{"pLDDT on another scale", view("file = \"a\"\nplddt = { scale = 10 }\n"), "scale must be the maximum possible pLDDT, 1 or 100, got 10"},
		{"bands of pLDDT", view("file = \"a\"\nplddt = { bands = [0.5, 0.7, 0.7, 0.9] }\n"), "bands must be three ascending numbers between 0 and 100"},
		{"more stars", "[[views]]\nname = \"v\"\nkind = \"trajectory\"\nfile = \"*/a\"\ntopology = \"*/*\"\n", "topology must not have more * than file"},
		{"a column twice", view("file = \"a\"\nx = \"t\"\ny = [\"a\", \"t\"]\n"), `the column "t" occurs twice`},
		{"a bar's title of a series", view("file = \"a\"\nquantity = \"Rg\"\n"), "quantity applies to matrix, not to series"},
		{"no axis", view("file = \"a\"\nlog = [\"z\"]\n"), `log must be`},
		{"a fit that is not drawn", view("file = \"a\"\ny = [\"a\"]\nfits = [\"b\"]\n"), `the fit "b" is not in y`},
		{"errors of what is not drawn", view("file = \"a\"\ny = [\"a\"]\nerrors = { b = \"b_se\" }\n"), `errors has the column "b", which is not in y`},
		{"errors that are drawn", view("file = \"a\"\ny = [\"a\", \"e\"]\nerrors = { a = \"e\" }\n"), `"e" is an error: leave it out of y`},
		{"a unit that is no text", view("file = \"a\"\nunits = { a = 1 }\n"), "a must be a text"},
	}
	for _, tt := range tests {
		_, mistakes := Parse("a.toml", []byte(head+tt.views))
		found := false
		for _, m := range mistakes {
			found = found || strings.Contains(m.Msg, tt.want) && m.Line > 4
		}
		if !found {
			t.Errorf("%s: %v, want %q", tt.name, mistakes, tt.want)
		}
	}
}

func TestViewsShowOutputs(t *testing.T) {
	const head = `format = 1
type = "a"
version = "1"
command = ["true"]
[[outputs]]
name = "poses"
title = "Docked poses"
kind = "structure"
file = "poses/*.pdb"
[[outputs]]
name = "report"
file = "*.txt"
[[views]]
name = "v"
`
	for _, tt := range []struct{ view, mistake, file, kind, title string }{
		{`output = "poses"`, "", "poses/*.pdb", "structure", "Docked poses"},
		{"output = \"poses\"\nkind = \"text\"\ntitle = \"T\"", "", "poses/*.pdb", "text", "T"},
		{"kind = \"structure\"\nfile = \"poses/best*.pdb\"", "", "poses/best*.pdb", "structure", "v"},
		{"kind = \"structure\"\nfile = \"poses/best.pdb\"", "", "poses/best.pdb", "structure", "v"},
		{"kind = \"trajectory\"\nfile = \"a.txt\"\ntopology = \"poses/a.pdb\"", "", "a.txt", "trajectory", "v"},
		{"kind = \"text\"\nfile = \"a.csv\"", `line 16: file "a.csv" matches no output: add it to [[outputs]]`, "", "", ""},
		{"kind = \"text\"\nfile = \"*/a.txt\"", `line 16: file "*/a.txt" matches no output`, "", "", ""},
		{"kind = \"structure\"\nfile = \"*/a.pdb\"", `line 16: file "*/a.pdb" matches no output`, "", "", ""},
		{"kind = \"trajectory\"\nfile = \"a.txt\"\ntopology = \"a.pdb\"", `line 17: topology "a.pdb" matches no output`, "", "", ""},
		{"kind = \"text\"\nfile = \"/a.csv\"", `line 16: file "/a.csv" must be a path below the output folder`, "", "", ""},
		{`output = "pose"`, `line 15: there is no output "pose"; [[outputs]] has poses, report`, "", "", ""},
		{"output = \"poses\"\nfile = \"a.txt\"", "line 16: a view has either file or output", "", "", ""},
		{`output = "report"`, "line 13: kind is missing in [[views]]", "", "", ""},
		{`kind = "text"`, "line 13: file is missing in [[views]]", "", "", ""},
		{"kind = \"text\"\noutput = 1", "line 16: output must be a text", "", "", ""},
	} {
		a, mistakes := Parse("a.toml", []byte(head+tt.view+"\n"))
		var told []string
		for _, m := range mistakes {
			told = append(told, fmt.Sprintf("line %d: %s", m.Line, m.Msg))
		}
		if all := strings.Join(told, "\n"); (tt.mistake == "") != (all == "") || !strings.Contains(all, tt.mistake) {
			t.Errorf("%s: %s; want %s", tt.view, all, tt.mistake)
			continue
		}
		if tt.mistake != "" {
			continue
		}
		if v := a.Views.Named("v"); v.File != tt.file || v.Kind != tt.kind || v.Title != tt.title {
			t.Errorf("%s: %+v", tt.view, v)
		}
	}
}
