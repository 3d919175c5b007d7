package input

import "fmt"

// Fault is one mistake in the settings, in words for the user.
type Fault struct {
	Loc  []any  `json:"loc"`  // path below the settings: keys and, in an array, indexes
	Msg  string `json:"msg"`  // what is wrong and what to do
	Type string `json:"type"` // one of the kinds below
}

// Kinds of faults.
const (
	JSON     = "json"     // not a JSON object
	Missing  = "missing"  // a required key is absent
	Unknown  = "unknown"  // no such key
	Type     = "type"     // a value of the wrong type
	Range    = "range"    // a number out of bounds
	Conflict = "conflict" // two settings that exclude each other
	Name     = "name"     // a name that is not fit for a folder, or taken
	Sequence = "sequence" // not a sequence of the twenty amino acids
)

// Loc is the path to a setting.
func Loc(path ...any) []any { return append([]any{}, path...) }

// Faultf returns a fault of a kind with a formatted message.
func Faultf(loc []any, kind, format string, args ...any) Fault {
	return Fault{Loc: loc, Type: kind, Msg: fmt.Sprintf(format, args...)}
}
