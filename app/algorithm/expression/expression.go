// Package expression evaluates derived values, rules and conditions: expressions on
// settings, written in the language of expr-lang/expr. All numbers are float64.
package expression

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
)

// Kind is the type of a value in an expression.
type Kind string

// Kinds of values. Any is for values of unknown type.
const (
	Number Kind = "number"
	Text   Kind = "text"
	Flag   Kind = "flag"
	List   Kind = "list"
	Any    Kind = ""
)

var kinds = map[Kind]types.Type{
	Number: types.Float64, Text: types.String, Flag: types.Bool, List: types.TypeOf([]any{}), Any: types.Any,
}

// Names lists the values that an expression can use, by name and kind.
type Names struct {
	Settings, Derived map[string]Kind
	Facts             map[string][]string // metadata names by file
	Files             map[string]Kind     // paths, only for conditions
}

// alone maps each metadata name that only one file has to that file. Expressions can omit
// the file for these names.
func (n Names) alone() map[string]string {
	of := map[string]string{}
	for file, facts := range n.Facts {
		for _, fact := range facts {
			if _, taken := of[fact]; taken {
				of[fact] = ""
				continue
			}
			of[fact] = file
		}
	}
	maps.DeleteFunc(of, func(fact, file string) bool { return file == "" || n.Facts[fact] != nil })
	return of
}

// Expression is a compiled expression.
type Expression struct {
	Text     string
	Settings []string // settings it reads, in order of first use
	Derived  []string // likewise
	Facts    []Fact   // likewise
	Files    []string // likewise
	Literals []Literal
	Optional []string // settings that are only read on the left of ??, which replaces a missing value
	Kind     Kind     // of the result

	program   *vm.Program
	alone     map[string]string // file of each metadata name used without a file
	makesText bool              // it creates text, which must be counted
}

// Fact is one number of a file's metadata.
type Fact struct{ File, Name string }

// Literal is a value with which an expression compares a setting or a file's path.
type Literal struct {
	Of, Name string // "settings" or "files", and the name
	Value    any
}

// Parse compiles an expression. The error continues a sentence that begins with the
// expression.
func Parse(text string, names Names) (*Expression, error) {
	return compile(text, names)
}

// ParseRule compiles a boolean expression.
func ParseRule(text string, names Names) (*Expression, error) {
	return compile(text, names, expr.AsBool())
}

// ParseCondition compiles an expression of any kind; see Holds.
func ParseCondition(text string, names Names) (*Expression, error) {
	e, err := compile(text, names)
	if err == nil && e.Kind == Number && len(e.Settings)+len(e.Derived) == 0 {
		return nil, errors.New("a number is always true: compare it with another, as in gpus > 0")
	}
	return e, err
}

func compile(text string, names Names, options ...expr.Option) (*Expression, error) {
	alone := names.alone()
	env := types.Map{"settings": typesOf(names.Settings), "derived": typesOf(names.Derived), "facts": typesOfFacts(names, alone)}
	if names.Files != nil {
		env["files"], env["gpus"] = typesOf(names.Files), types.Float64
	}
	maps.Copy(env, meterTypes())
	patch := &metered{}
	options = append(options, expr.Env(env), expr.DisableBuiltin("now"), expr.Patch(patch))
	for _, name := range multiplying {
		options = append(options, expr.DisableBuiltin(name))
	}
	tree, err := parser.Parse(text)
	if err != nil {
		return nil, plain(err)
	}
	uses := reads{"settings": {}, "derived": {}, "facts": {}, "files": {}}
	ast.Walk(&tree.Node, uses)
	if err := names.unknown(uses); err != nil {
		return nil, err
	}
	program, err := expr.Compile(text, options...)
	if err != nil {
		return nil, names.plain(err)
	}
	e := &Expression{Text: text, program: program, Kind: kindOf(program.Node()), alone: alone, makesText: patch.used}
	e.Facts = uses.facts(names, alone)
	e.Settings, e.Derived, e.Files = uses.of("settings"), uses.of("derived"), uses.of("files")
	ast.Walk(&tree.Node, literals{e})
	e.Optional = optional(&tree.Node, e.Settings)
	return e, nil
}

// unknown returns an error for the first parameter or file that does not exist.
func (n Names) unknown(uses reads) error {
	for _, name := range uses.of("settings") {
		if _, known := n.Settings[name]; !known {
			return fmt.Errorf("no parameter is named %q%s (at character %d)", name, meant(name, n.Settings), uses["settings"][name]+1)
		}
	}
	for _, name := range uses.of("files") {
		_, known := n.Files[name]
		_, isSetting := n.Settings[name]
		at := uses["files"][name] + 1
		switch {
		case n.Files == nil:
			return fmt.Errorf("only conditions read files.%s: write facts.%s.bytes for the bytes of a file (at character %d)", name, name, at)
		case !known && isSetting:
			return fmt.Errorf("the parameter %q is not a file: write settings.%s (at character %d)", name, name, at)
		case !known:
			return fmt.Errorf("no parameter is named %q%s (at character %d)", name, meant(name, n.Files), at)
		}
	}
	return nil
}

func meant(name string, among map[string]Kind) string {
	if near := plaintext.Nearest(name, slices.Sorted(maps.Keys(among))); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// literals collects the literals of an expression.
type literals struct{ of *Expression }

// Visit implements ast.Visitor.
func (l literals) Visit(node *ast.Node) {
	b, ok := (*node).(*ast.BinaryNode)
	if !ok || !slices.Contains([]string{"==", "!=", "in", "endsWith"}, b.Operator) {
		return
	}
	m, isMember := b.Left.(*ast.MemberNode)
	if !isMember {
		return
	}
	of, isName := m.Node.(*ast.IdentifierNode)
	name, isText := m.Property.(*ast.StringNode)
	if !isName || !isText || of.Value != "settings" && of.Value != "files" || (of.Value == "files") != (b.Operator == "endsWith") {
		return
	}
	all := []ast.Node{b.Right}
	if list, isList := b.Right.(*ast.ArrayNode); isList && b.Operator == "in" {
		all = list.Nodes
	}
	for _, one := range all {
		if value, ok := literal(one); ok {
			l.of.Literals = append(l.of.Literals, Literal{of.Value, name.Value, value})
		}
	}
}

// literal returns the value of a node that is a string, number or boolean.
func literal(node ast.Node) (any, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode:
		return n.Value, true
	case *ast.FloatNode:
		return n.Value, true
	case *ast.BoolNode:
		return n.Value, true
	}
	return nil, false
}

// optional returns the settings that are only read on the left of ??. It removes them
// from the tree.
func optional(tree *ast.Node, settings []string) []string {
	ast.Walk(tree, replaced{})
	needed := reads{"settings": {}, "derived": {}, "facts": {}}
	ast.Walk(tree, needed)
	return slices.DeleteFunc(slices.Clone(settings), func(name string) bool { _, found := needed["settings"][name]; return found })
}

// replaced removes operands whose missing value has a replacement: settings.NAME in
// settings.NAME ?? "".
type replaced struct{}

// Visit implements ast.Visitor.
func (replaced) Visit(node *ast.Node) {
	b, ok := (*node).(*ast.BinaryNode)
	if !ok || b.Operator != "??" {
		return
	}
	if m, ok := b.Left.(*ast.MemberNode); ok {
		if root, ok := m.Node.(*ast.IdentifierNode); ok && root.Value == "settings" {
			b.Left = &ast.NilNode{}
		}
	}
}

func typesOf(kindsOf map[string]Kind) types.Map {
	all := types.Map{}
	for name, kind := range kindsOf {
		all[name] = kinds[kind]
	}
	return all
}

func typesOfFacts(names Names, alone map[string]string) types.Map {
	all := types.Map{}
	for file, facts := range names.Facts {
		numbers := types.Map{}
		for _, fact := range facts {
			numbers[fact] = types.Float64
		}
		all[file] = numbers
	}
	for fact := range alone {
		all[fact] = types.Float64
	}
	return all
}

// plain returns the message of an error, and suggests the prefix if it is missing from a
// name.
func (n Names) plain(err error) error {
	at, isKnown := errors.AsType[*file.Error](err)
	if !isKnown {
		return err
	}
	name, isName := strings.CutPrefix(at.Message, "unknown name ")
	_, isSetting := n.Settings[name]
	_, isDerived := n.Derived[name]
	switch {
	case isName && isSetting:
		at.Message += "; did you mean settings." + name + "?"
	case isName && isDerived:
		at.Message += "; did you mean derived." + name + "?"
	case isName:
		at.Message += "; write settings.NAME for a setting"
	}
	return plain(at)
}

// plain returns the message of an error without the source excerpt.
func plain(err error) error {
	if at, ok := errors.AsType[*file.Error](err); ok {
		return fmt.Errorf("%s (at character %d)", strings.TrimSuffix(at.Message, "."), at.Column+1)
	}
	return err
}

func kindOf(node ast.Node) Kind {
	t := node.Type()
	if t == nil {
		return Any
	}
	switch t.Kind().String() {
	case "int", "float64":
		return Number
	case "string":
		return Text
	case "bool":
		return Flag
	case "slice":
		return List
	}
	return Any
}

// reads collects the members of each value that an expression reads, and the position of
// the first use.
type reads map[string]map[string]int

// of returns the members of a value in order of first use.
func (r reads) of(value string) []string {
	places := r[value]
	return slices.SortedFunc(maps.Keys(places), func(a, b string) int { return cmp.Compare(places[a], places[b]) })
}

// Visit implements ast.Visitor.
func (r reads) Visit(node *ast.Node) {
	m, ok := (*node).(*ast.MemberNode)
	if !ok {
		return
	}
	name, isText := m.Property.(*ast.StringNode)
	if !isText {
		return
	}
	switch of := m.Node.(type) {
	case *ast.IdentifierNode:
		if r[of.Value] != nil {
			r.note(of.Value, name.Value, m)
		}
	case *ast.MemberNode:
		root, isName := of.Node.(*ast.IdentifierNode)
		if file, isText := of.Property.(*ast.StringNode); isText && isName && root.Value == "facts" {
			r.note("facts", file.Value+"."+name.Value, m)
		}
	}
}

// note records the first position at which a member is read.
func (r reads) note(of, name string, m *ast.MemberNode) {
	at := m.Location().From
	if first, known := r[of][name]; !known || at < first {
		r[of][name] = at
	}
}

// facts returns the file metadata among the members read.
func (r reads) facts(names Names, alone map[string]string) []Fact {
	var all []Fact
	for _, key := range r.of("facts") {
		file, name, whole := strings.Cut(key, ".")
		switch {
		case whole:
			all = append(all, Fact{file, name})
		case names.Facts[key] == nil:
			all = append(all, Fact{alone[key], key})
		}
	}
	return all
}

// Values holds the values that expressions can use: float64 numbers, strings, booleans
// and lists of these.
type Values struct {
	Settings, Derived map[string]any
	Facts             map[string]map[string]any
	Files             map[string]any // paths or lists of paths; only for conditions
	GPUs              int            // only for conditions
}

// Lacks reports whether a setting, derived value, metadata value or file that the
// expression reads has no value.
func (e *Expression) Lacks(v Values) bool {
	return slices.ContainsFunc(e.Settings, func(name string) bool { return v.Settings[name] == nil && !slices.Contains(e.Optional, name) }) ||
		slices.ContainsFunc(e.Facts, func(f Fact) bool { return v.Facts[f.File][f.Name] == nil }) ||
		slices.ContainsFunc(e.Derived, func(name string) bool { return v.Derived[name] == nil }) ||
		slices.ContainsFunc(e.Files, func(name string) bool { return v.Files[name] == nil })
}

// Holds reports whether a condition has a value other than false or an empty list.
func (e *Expression) Holds(v Values) bool {
	if e.Lacks(v) {
		return false
	}
	got, err := e.Value(v)
	list, isList := got.([]any)
	return err == nil && got != nil && got != false && (!isList || len(list) > 0)
}

// Value evaluates the expression. Numbers are finite.
func (e *Expression) Value(v Values) (any, error) {
	facts := map[string]any{}
	for file, known := range v.Facts {
		facts[file] = known
	}
	for fact, file := range e.alone {
		facts[fact] = v.Facts[file][fact]
	}
	machine := vm.VM{MemoryBudget: memory}
	env := map[string]any{"settings": v.Settings, "derived": v.Derived, "facts": facts, "files": v.Files, "gpus": float64(v.GPUs)}
	if e.makesText {
		maps.Copy(env, (&meter{}).functions())
	}
	got, err := machine.Run(e.program, env)
	if err != nil {
		return nil, plain(err)
	}
	if n, ok := got.(int); ok {
		got = float64(n)
	}
	if n, ok := got.(float64); ok && (math.IsNaN(n) || math.IsInf(n, 0)) {
		return nil, errors.New("it is not a finite number")
	}
	return got, nil
}

// Native converts a JSON value for use in expressions; an object becomes a map.
func Native(v *strictjson.Value) any { return v.Native(func(n float64) any { return n }) }
