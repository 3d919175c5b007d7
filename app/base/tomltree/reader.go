package tomltree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"molrun/app/base/strictjson"
)

// Reader gives the values of a tree. Its methods record errors and continue,
// so that one reading finds every error.
type Reader struct {
	Root     *Node // nil: the text is not TOML
	mistakes []Mistake
}

// Mistake is something wrong on a line of the file.
type Mistake struct {
	Line int // from 1
	Msg  string
}

// Mistakef records an error.
func (r *Reader) Mistakef(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{line, fmt.Sprintf(format, args...)})
}

// Noted reports whether an error has been found on these lines.
func (r *Reader) Noted(first, last int) bool {
	return slices.ContainsFunc(r.mistakes, func(m Mistake) bool { return first <= m.Line && m.Line <= last })
}

// Mistakes returns what has been noted, in the order of the file.
func (r *Reader) Mistakes() []Mistake {
	slices.SortStableFunc(r.mistakes, func(x, y Mistake) int { return cmp.Compare(x.Line, y.Line) })
	return slices.Compact(r.mistakes)
}

// KindName names a kind in words that a scientist understands.
func KindName(k strictjson.Kind) string {
	return [...]string{
		strictjson.Null: "nothing", strictjson.Bool: "true or false", strictjson.Number: "a number",
		strictjson.String: "a text", strictjson.Array: "a list", strictjson.Object: "a table",
	}[k]
}

// OrList quotes texts and joins them: "a", "b" or "c".
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
