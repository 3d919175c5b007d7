package house

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// step is one function on a way through the code, as ARCHITECTURE.md lists it.
type step struct {
	name  string // package.Function or package.Type.Method
	depth int    // 0: where the way begins, or begins again
}

var (
	wayTitle = regexp.MustCompile(`(?m)^### (.+)$`)
	wayStep  = regexp.MustCompile("(?m)^( *)- `([\\w/.]+)`")
	wayCost  = regexp.MustCompile(`(?m)^(\d+) changes of file, (\d+) files, (\d+) climbs\b`)
)

// ways reads the section of ARCHITECTURE.md that lists them.
func ways(t *testing.T, root string) map[string][]step {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]step{}
	for _, part := range sections(string(page)) {
		var steps []step
		for _, m := range wayStep.FindAllStringSubmatch(part.text, -1) {
			steps = append(steps, step{m[2], len(m[1]) / 2})
		}
		if len(steps) > 0 {
			all[part.title] = steps
		}
	}
	return all
}

type section struct{ title, text string }

func sections(page string) (all []section) {
	at := wayTitle.FindAllStringSubmatchIndex(page, -1)
	for i, m := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if next := strings.Index(page[m[1]:end], "\n## "); next >= 0 {
			end = m[1] + next
		}
		all = append(all, section{page[m[2]:m[3]], page[m[1]:end]})
	}
	return all
}

// functions indexes the functions of the module by package.Name or
// package.Type.Method.
func (t *tree) functions() map[string]*ast.FuncDecl {
	all := map[string]*ast.FuncDecl{}
	for _, p := range t.pkgs {
		for _, f := range p.files {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				name := p.name() + "."
				if fn.Recv != nil {
					name += receiver(fn) + "."
				}
				all[name+fn.Name.Name] = fn
			}
		}
	}
	return all
}

func receiver(fn *ast.FuncDecl) string {
	typ := fn.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	return typ.(*ast.Ident).Name
}

// TestWaysExist wants each step of the ways in ARCHITECTURE.md to be a function,
// and one that the step above it names.
func TestWaysExist(t *testing.T) {
	all := loaded(t)
	functions := all.functions()
	found := ways(t, all.root)
	if len(found) < 5 {
		t.Errorf("ARCHITECTURE.md lists %d ways, want at least 5", len(found))
	}
	for title, steps := range found {
		var above []string
		for _, s := range steps {
			if functions[s.name] == nil {
				t.Errorf("%s: there is no function %s", title, s.name)
				return
			}
			above = append(above[:min(s.depth, len(above))], s.name)
			if len(above) < 2 {
				continue
			}
			caller := above[len(above)-2]
			if short := s.name[strings.LastIndexByte(s.name, '.')+1:]; !names(functions[caller], short) {
				t.Errorf("%s: %s does not name %s", title, caller, short)
			}
		}
	}
}

// names reports whether a function names an identifier, in any case: a field may
// hold the method of another type.
func names(fn *ast.FuncDecl, name string) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && strings.EqualFold(id.Name, name)
		return !found
	})
	return found
}

// TestWaysCostWhatThePageSays counts what a reader pays who follows a way: each
// change of file, going down into a function or back up to its caller for what it
// does next. The latter are climbs.
func TestWaysCostWhatThePageSays(t *testing.T) {
	all := loaded(t)
	functions := all.functions()
	page, err := os.ReadFile(filepath.Join(all.root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, part := range sections(string(page)) {
		if m := wayCost.FindString(part.text); m != "" {
			said[part.title] = m
		}
	}
	for title, steps := range ways(t, all.root) {
		files := map[string]bool{}
		var above []string
		at, changes, climbs := "", 0, 0
		for _, s := range steps {
			if functions[s.name] == nil {
				t.Fatalf("%s: there is no function %s", title, s.name)
			}
			file := all.fset.Position(functions[s.name].Pos()).Filename
			files[file] = true
			above = above[:min(s.depth, len(above))]
			if len(above) > 0 && at != above[len(above)-1] {
				at = above[len(above)-1]
				changes++
				climbs++
			}
			if at != "" && at != file {
				changes++
			}
			at = file
			above = append(above, file)
		}
		if got := fmt.Sprintf("%d changes of file, %d files, %d climbs", changes, len(files), climbs); got != said[title] {
			t.Errorf("%s costs %s; the page says %q", title, got, said[title])
		}
	}
}
