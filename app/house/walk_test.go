package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "molrun"

// pkg is one package of the module, without its tests.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Export     string // file of the compiled package
	DepOnly    bool
	Name       string
	Doc        string

	files []*ast.File
	info  *types.Info
	types *types.Package
}

// name is the package's path below the module, "." for the root.
func (p *pkg) name() string {
	if p.ImportPath == module {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, module+"/")
}

// tree is all packages of the module, parsed and type-checked.
type tree struct {
	fset *token.FileSet
	pkgs []*pkg
	root string
}

// load lists, parses and type-checks the module once for all tests. What the
// packages import is read from the compiler's export data.
var load = sync.OnceValues(func() (*tree, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Imports,Export,DepOnly,Name,Doc", module+"/...")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, errors.New(stderr.String())
	}
	t := &tree{fset: token.NewFileSet()}
	if t.root, err = filepath.Abs(filepath.Join("..", "..")); err != nil {
		return nil, err
	}
	export := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		export[p.ImportPath] = p.Export
		if !p.DepOnly {
			t.pkgs = append(t.pkgs, &p)
		}
	}
	compiled := importer.ForCompiler(t.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })
	for _, p := range t.pkgs {
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(t.fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			p.files = append(p.files, f)
		}
		p.info = &types.Info{Uses: map[*ast.Ident]types.Object{}}
		if p.types, err = (&types.Config{Importer: compiled}).Check(p.ImportPath, t.fset, p.files, p.info); err != nil {
			return nil, err
		}
	}
	return t, nil
})

func loaded(t *testing.T) *tree {
	t.Helper()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lines counts the lines of a package's files.
func (t *tree) lines(p *pkg) int {
	n := 0
	for _, f := range p.files {
		n += t.fset.Position(f.FileEnd).Line - 1
	}
	return n
}

// methodFiles tells over how many files the methods of each type are spread.
func (t *tree) methodFiles(p *pkg) map[string]int {
	in := map[string]map[string]bool{}
	for _, f := range p.files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			typ := strings.TrimPrefix(types.ExprString(fn.Recv.List[0].Type), "*")
			if in[typ] == nil {
				in[typ] = map[string]bool{}
			}
			in[typ][t.file(f.Package)] = true
		}
	}
	spread := map[string]int{}
	for typ, files := range in {
		spread[typ] = len(files)
	}
	return spread
}

func (t *tree) file(pos token.Pos) string { return filepath.Base(t.fset.Position(pos).Filename) }

// references tells which of its package's other files each file refers to: by
// naming one of their declarations, a field or a method.
func (t *tree) references(p *pkg) map[string]map[string]bool {
	to := map[string]map[string]bool{}
	for _, f := range p.files {
		to[t.file(f.Package)] = map[string]bool{}
	}
	for id, o := range p.info.Uses {
		if o.Pkg() != p.types || !o.Pos().IsValid() {
			continue
		}
		if v, isVar := o.(*types.Var); isVar && !v.IsField() && o.Parent() != p.types.Scope() {
			continue // local
		}
		if from, in := t.file(id.Pos()), t.file(o.Pos()); from != in {
			to[from][in] = true
		}
	}
	return to
}

// loops gives the strongly connected components of the graph that have more than
// one node (Tarjan's algorithm).
func loops(edges map[string]map[string]bool) [][]string {
	index, low, on := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var found [][]string
	var visit func(string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack, on[v] = append(stack, v), true
		for w := range edges[v] {
			switch {
			case index[w] == 0:
				visit(w)
				low[v] = min(low[v], low[w])
			case on[w]:
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		var loop []string
		for len(loop) == 0 || loop[len(loop)-1] != v {
			w := stack[len(stack)-1]
			stack, on[w] = stack[:len(stack)-1], false
			loop = append(loop, w)
		}
		if len(loop) > 1 {
			found = append(found, loop)
		}
	}
	for v := range edges {
		if index[v] == 0 {
			visit(v)
		}
	}
	return found
}
