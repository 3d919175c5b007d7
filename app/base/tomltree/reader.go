package tomltree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"molrun/app/base/strictjson"
)

// Reader returns the values of a tree. Its methods record errors and continue, so that
// one pass finds every error.
type Reader struct {
	Root     *Node // nil means that the text is not TOML
	mistakes []Error
}

// Error is an error on a line of the file.
type Error struct {
	Line int // from 1
	Msg  string
}

// Errorf records an error.
func (r *Reader) Errorf(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, Error{line, fmt.Sprintf(format, args...)})
}

// HasErrors reports whether an error was recorded on these lines.
func (r *Reader) HasErrors(first, last int) bool {
	return slices.ContainsFunc(r.mistakes, func(m Error) bool { return first <= m.Line && m.Line <= last })
}

// Errors returns the recorded errors, in file order.
func (r *Reader) Errors() []Error {
	slices.SortStableFunc(r.mistakes, func(x, y Error) int { return cmp.Compare(x.Line, y.Line) })
	return slices.Compact(r.mistakes)
}

// KindName names a kind in words for scientists.
func KindName(k strictjson.Kind) string {
	return [...]string{
		strictjson.Null: "nothing", strictjson.Bool: "true or false", strictjson.Number: "a number",
		strictjson.String: "a text", strictjson.Array: "a list", strictjson.Object: "a table",
	}[k]
}

// OrList quotes strings and joins them: "a", "b" or "c".
func OrList(texts []string) string {
	var b strings.Builder
	for i, s := range texts {
		switch {
		case i > 0 && i == len(texts)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", s)
	}
	return b.String()
}
