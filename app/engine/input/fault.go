package input

import (
	"fmt"

	"molrun/app/base/fault"
)

// Kinds of validation errors.
const (
	JSON     = "json"     // not a JSON object
	Missing  = "missing"  // a required key is absent
	Unknown  = "unknown"  // unknown key
	Type     = "type"     // a value of the wrong type
	Range    = "range"    // a number out of range
	Conflict = "conflict" // mutually exclusive settings
	Name     = "name"     // a name that is invalid as a folder name, or taken
	Sequence = "sequence" // not a sequence of the twenty amino acids
)

// Loc returns the path of a setting.
func Loc(path ...any) []any { return append([]any{}, path...) }

// Faultf returns a validation error of a kind with a formatted message for the user. Its
// path is relative to the settings.
func Faultf(loc []any, kind, format string, args ...any) fault.Field {
	return fault.Field{Loc: loc, Type: kind, Msg: fmt.Sprintf(format, args...)}
}
