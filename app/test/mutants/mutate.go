package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// mutant is one small mistake: bytes From to To of a file replaced by Text.
type mutant struct {
	File     string // path in the module
	Function string
	Operator string
	Old, New string // the line before and after; New is empty if it is dropped
	Nth      int    // counts mutants that are equal in all of the above, from 1

	Line, Column int // where the change starts, from 1
	From, To     int
	Text         string
}

// key names the mutant across edits elsewhere in the file.
func (m mutant) key() string {
	after := m.New
	if after == "" {
		after = "dropped"
	}
	s := fmt.Sprintf("%s %s %s: %s => %s", m.File, m.Function, m.Operator, m.Old, after)
	if m.Nth > 1 {
		s += fmt.Sprintf(" #%d", m.Nth)
	}
	return s
}

// apply returns the file's source with the mistake in it.
func (m mutant) apply(src []byte) []byte {
	return slices.Concat(src[:m.From], []byte(m.Text), src[m.To:])
}

// mutate returns every mutant of a file in the order of the source.
func mutate(name string, src []byte) ([]mutant, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := finder{name: name, src: src, file: fset.File(file.Pos()), seen: map[string]int{}}
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			f.function = functionName(fn)
			f.in(fn.Type, fn.Body)
		}
	}
	return f.found, nil
}

// functionName is the function's name, after its receiver's type for a method.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
			continue
		case *ast.IndexExpr:
			t = x.X
			continue
		case *ast.Ident:
			return x.Name + "." + fn.Name.Name
		}
		return fn.Name.Name
	}
}

// finder collects the mutants of one file.
type finder struct {
	name     string
	src      []byte
	file     *token.File
	function string
	seen     map[string]int
	found    []mutant
}

// replace notes a mutant that puts text in place of the source from one position
// to another.
func (f *finder) replace(operator string, from, to token.Pos, text string) {
	m := mutant{
		File: f.name, Function: f.function, Operator: operator,
		From: f.file.Offset(from), To: f.file.Offset(to), Text: text,
	}
	at := f.file.Position(from)
	m.Line, m.Column = at.Line, at.Column
	start := bytes.LastIndexByte(f.src[:m.From], '\n') + 1
	m.Old = firstLine(f.src[start:])
	if operator != "drop" {
		m.New = firstLine(slices.Concat(f.src[start:m.From], []byte(text), f.src[m.To:]))
	}
	m.Nth = 1
	f.seen[m.key()]++
	m.Nth = f.seen[m.key()]
	f.found = append(f.found, m)
}

func firstLine(src []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimLeft(src, " \t"), []byte("\n"))
	return strings.TrimSpace(string(line))
}

// sample draws the order in which mutants are tried: by the hash of their names,
// with the operators taking turns so that the rare ones are met too.
func sample(all []mutant, seed string) []mutant {
	type ranked struct {
		mutant
		round int
		hash  [sha256.Size]byte
	}
	drawn := make([]ranked, len(all))
	for i, m := range all {
		drawn[i] = ranked{mutant: m, hash: sha256.Sum256([]byte(seed + "\x00" + m.key()))}
	}
	byHash := func(a, b ranked) int { return bytes.Compare(a.hash[:], b.hash[:]) }
	slices.SortFunc(drawn, byHash)
	rounds := map[string]int{}
	for i := range drawn {
		drawn[i].round = rounds[drawn[i].Operator]
		rounds[drawn[i].Operator]++
	}
	slices.SortFunc(drawn, func(a, b ranked) int { return cmp.Or(cmp.Compare(a.round, b.round), byHash(a, b)) })
	order := make([]mutant, len(drawn))
	for i, d := range drawn {
		order[i] = d.mutant
	}
	return order
}
