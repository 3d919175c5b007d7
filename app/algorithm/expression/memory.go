package expression

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm/runtime"
)

// memory limits what one evaluation can allocate: list elements, and bytes of text.
const memory = 4 << 20

var errMemory = errors.New("it creates more than 4 MiB of text")

// multiplying lists disabled functions, which can create large values from small ones and
// are not needed for settings.
var multiplying = []string{"repeat", "toJSON", "fromJSON", "toBase64", "fromBase64"}

// texts and lists are the functions that return a string and a list of strings. The
// expression language does not count the memory that these strings take.
var (
	texts = []string{"join", "replace", "string", "upper", "lower"}
	lists = []string{"split", "splitAfter"}
)

// Functions that metered inserts into an expression. Their names are not valid syntax, so
// users cannot call them.
const (
	addTexts  = "text + text"
	addValues = "value + value"
	counted   = "counted " // followed by the name of the function
)

// meter counts the text that one evaluation creates, before creating it.
type meter struct{ used int }

func (m *meter) functions() map[string]any {
	all := map[string]any{
		addTexts:  func(a, b string) string { m.count(len(a) + len(b)); return a + b },
		addValues: func(a, b any) any { m.count(size(a) + size(b)); return runtime.Add(a, b) },
	}
	for _, name := range texts {
		all[counted+name] = func(values ...any) string { return m.call(name, values).(string) }
	}
	for _, name := range lists {
		all[counted+name] = func(values ...any) []string { return m.call(name, values).([]string) }
	}
	return all
}

// call calls a built-in function of the language.
func (m *meter) call(name string, values []any) any {
	m.count(made(name, values))
	f := builtin.Builtins[builtin.Index[name]]
	if f.Fast != nil {
		return f.Fast(values[0])
	}
	value, err := f.Func(values...)
	if err != nil {
		panic(err)
	}
	return value
}

// made returns an upper bound on the bytes of text that a function creates.
func made(name string, values []any) int {
	n := size(values[0])
	switch {
	case name == "join" && len(values) > 1:
		n += length(values[0]) * size(values[1])
	case name == "replace":
		n += strings.Count(values[0].(string), values[1].(string)) * size(values[2])
	}
	return n
}

// count aborts the evaluation if it exceeds the limit, by panicking as the language's own
// functions do.
func (m *meter) count(bytes int) {
	if m.used += bytes; m.used > memory {
		panic(errMemory)
	}
}

// size returns the total bytes of all strings in a value, plus one for every other value.
// It can stop counting once it exceeds memory.
func size(value any) (n int) {
	switch v := value.(type) {
	case string:
		return len(v)
	case []string:
		for _, text := range v {
			n += len(text) + 1
		}
	case []any:
		for i := 0; i < len(v) && n <= memory; i++ {
			n += size(v[i]) + 1
		}
	case map[string]any:
		for key, one := range v {
			if n += len(key) + size(one) + 1; n > memory {
				break
			}
		}
	}
	return n + 1
}

func length(value any) int {
	switch v := value.(type) {
	case []string:
		return len(v)
	case []any:
		return len(v)
	}
	return 0
}

// metered makes an expression count the text that it creates, if any.
type metered struct{ used bool }

// Visit implements ast.Visitor.
func (m *metered) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.BinaryNode:
		if name := adding(n); name != "" {
			m.call(node, name, n.Left, n.Right)
		}
	case *ast.BuiltinNode:
		if slices.Contains(slices.Concat(texts, lists), n.Name) && isRight(n) {
			m.call(node, counted+n.Name, n.Arguments...)
		}
	}
}

// adding returns the function that replaces a + operator that might concatenate strings,
// or "" for any other node. The language itself reports type errors, because its messages
// name the types.
func adding(n *ast.BinaryNode) string {
	left, right := kindOf(n.Left), kindOf(n.Right)
	switch {
	case n.Operator != "+":
		return ""
	case left == Text && right == Text:
		return addTexts
	case left == Any && (right == Any || right == Text), left == Text && right == Any:
		return addValues
	}
	return ""
}

// isRight reports whether the arguments of a function are valid. The language itself
// reports invalid ones.
func isRight(n *ast.BuiltinNode) bool {
	takes := map[string][]Kind{
		"join": {List, Text}, "replace": {Text, Text, Text, Number}, "string": {Any}, "upper": {Text}, "lower": {Text},
		"split": {Text, Text, Number}, "splitAfter": {Text, Text, Number},
	}[n.Name]
	least := map[string]int{"replace": 3, "split": 2, "splitAfter": 2}[n.Name]
	if len(n.Arguments) < max(1, least) || len(n.Arguments) > len(takes) {
		return false
	}
	for i, argument := range n.Arguments {
		if kind := kindOf(argument); kind != takes[i] && kind != Any && takes[i] != Any {
			return false
		}
	}
	return true
}

// call replaces a node with a call of the same type.
func (m *metered) call(node *ast.Node, name string, arguments ...ast.Node) {
	m.used = true
	t := (*node).Type()
	ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: arguments})
	(*node).SetType(t)
}

// meterTypes returns the types of a meter's functions.
var meterTypes = sync.OnceValue(func() types.Map {
	all := types.Map{}
	for name, f := range (&meter{}).functions() {
		all[name] = types.TypeOf(f)
	}
	return all
})
