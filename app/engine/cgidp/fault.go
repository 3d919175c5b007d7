package cgidp

import "fmt"

// Fault is one mistake in the settings, in words for the user.
type Fault struct {
	Loc  []any  `json:"loc"`  // path below the settings: keys and, in an array, indexes
	Msg  string `json:"msg"`  // what is wrong and what to do
	Type string `json:"type"` // one of the kinds below
}

// Kinds of faults.
const (
	faultJSON     = "json"     // not a JSON object
	faultMissing  = "missing"  // a required key is absent
	faultUnknown  = "unknown"  // no such key
	faultType     = "type"     // a value of the wrong type
	faultRange    = "range"    // a number out of bounds
	faultConflict = "conflict" // two settings that exclude each other
	faultName     = "name"     // a name that is not fit for a folder, or taken
	faultSequence = "sequence" // not a sequence of the twenty amino acids
)

// loc is the path to a setting.
func loc(path ...any) []any { return append([]any{}, path...) }

func faultf(loc []any, kind, format string, args ...any) Fault {
	return Fault{Loc: loc, Type: kind, Msg: fmt.Sprintf(format, args...)}
}
