package house

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What no package may exceed without a reason in its doc.go.
const (
	maxFiles       = 30
	maxLines       = 4500
	maxLoop        = 12
	maxMethodFiles = 8 // over which the methods of one type are spread
)

// rule is what a package may import and how large it may be. Zero numbers are the
// common bounds above.
type rule struct {
	own    []string // packages of this module; "*" is every one
	others []string // modules of others, by a part of their path

	files, lines, loop int
}

func TestImports(t *testing.T) {
	for _, p := range loaded(t).pkgs {
		r, known := rules[p.name()]
		if !known {
			t.Errorf("package %s has no rule: say in rules_test.go what it may import", p.name())
			continue
		}
		for _, path := range p.Imports {
			own, isOwn := strings.CutPrefix(path, module+"/")
			first, _, _ := strings.Cut(path, "/")
			switch {
			case isOwn:
				if !slices.Contains(r.own, own) && !slices.Contains(r.own, "*") && !mayImportLeaf(p.name(), own) {
					t.Errorf("%s imports %s", p.name(), own)
				}
			case strings.Contains(first, "."):
				if !slices.ContainsFunc(r.others, func(m string) bool { return strings.Contains(path+"/", m+"/") }) {
					t.Errorf("%s imports %s", p.name(), path)
				}
			}
		}
	}
}

// mayImportLeaf reports whether a package may import a leaf: everybody may, and a
// leaf those before it.
func mayImportLeaf(name, leaf string) bool {
	i := slices.Index(leaves, leaf)
	if i < 0 {
		return false
	}
	at := slices.Index(leaves, name)
	return at < 0 || i < at
}

func TestRulesAreOfPackagesThatExist(t *testing.T) {
	exists := map[string]bool{}
	for _, p := range loaded(t).pkgs {
		exists[p.name()] = true
	}
	for name := range rules {
		if !exists[name] {
			t.Errorf("there is a rule for %s, which is no package", name)
		}
	}
}

func TestPackagesStaySmall(t *testing.T) {
	all := loaded(t)
	for _, p := range all.pkgs {
		r := rules[p.name()]
		bounds := []struct {
			what            string
			got, own, usual int
		}{
			{"files", len(p.files), r.files, maxFiles},
			{"lines", all.lines(p), r.lines, maxLines},
		}
		for _, b := range bounds {
			bound := b.usual
			if b.own > 0 {
				bound = b.own
			}
			if b.got > bound {
				t.Errorf("%s has %d %s, %d are allowed: take a unit out of it, or decide in rules_test.go", p.name(), b.got, b.what, bound)
			}
			if says := fmt.Sprintf("%d %s", b.own, b.what); b.own > b.usual && !strings.Contains(packageDoc(p), says) {
				t.Errorf("%s may have %s, more than other packages, and its doc.go does not say that and why", p.name(), says)
			}
		}
	}
}

func TestFilesDoNotReferInLargeLoops(t *testing.T) {
	all := loaded(t)
	for _, p := range all.pkgs {
		bound := rules[p.name()].loop
		if bound == 0 {
			bound = maxLoop
		}
		for _, loop := range loops(all.references(p)) {
			if len(loop) > bound {
				slices.Sort(loop)
				t.Errorf("%d files of %s refer to one another, %d may: %s", len(loop), p.name(), bound, strings.Join(loop, " "))
			}
		}
	}
}

func TestMethodsOfATypeStayTogether(t *testing.T) {
	all := loaded(t)
	for _, p := range all.pkgs {
		for typ, files := range all.methodFiles(p) {
			if files > maxMethodFiles {
				t.Errorf("the methods of %s.%s are in %d files, %d are allowed", p.name(), typ, files, maxMethodFiles)
			}
		}
	}
}

// TestWalkerFindsLoops holds the walker itself against a graph whose loops are
// known.
func TestWalkerFindsLoops(t *testing.T) {
	graph := map[string]map[string]bool{
		"a": {"b": true}, "b": {"c": true}, "c": {"a": true, "d": true}, // a, b, c
		"d": {"e": true}, "e": {"f": true}, "f": {"e": true}, // e, f
		"g": {"a": true, "f": true},
	}
	var sizes []int
	for _, loop := range loops(graph) {
		sizes = append(sizes, len(loop))
	}
	slices.Sort(sizes)
	if !slices.Equal(sizes, []int{2, 3}) {
		t.Errorf("loops of %v, want one of 2 and one of 3", sizes)
	}
}

func packageDoc(p *pkg) string {
	for _, f := range p.files {
		if f.Doc != nil {
			return f.Doc.Text()
		}
	}
	return ""
}

// TestPackagesAreDescribed wants a doc comment of each package, and its row in the
// map of ARCHITECTURE.md.
func TestPackagesAreDescribed(t *testing.T) {
	all := loaded(t)
	page, err := os.ReadFile(filepath.Join(all.root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all.pkgs {
		if packageDoc(p) == "" && p.name() != "." {
			t.Errorf("package %s has no doc comment", p.name())
		}
		if !strings.Contains(string(page), "| `"+p.name()+"` |") && p.name() != "." {
			t.Errorf("ARCHITECTURE.md does not say what package %s is for", p.name())
		}
	}
}
