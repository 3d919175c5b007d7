package input

import (
	"fmt"

	"molrun/app/base/fault"
)

// Kinds of faults of settings.
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

// Faultf returns a fault of a kind with a formatted message, in words for the user. Its path
// begins below the settings.
func Faultf(loc []any, kind, format string, args ...any) fault.Field {
	return fault.Field{Loc: loc, Type: kind, Msg: fmt.Sprintf(format, args...)}
}
