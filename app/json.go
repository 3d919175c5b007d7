package app

// Kind is the kind of a JSON value.
type Kind byte

// The kinds of JSON values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// Value is a JSON value that keeps how it was written.
type Value struct {
	Kind    Kind
	Raw     []byte // as sent
	Text    string // of a string: its value; of a number: its literal; of a bool: true or false
	Items   []*Value
	Members []Member
}

// Member is a member of an object.
type Member struct {
	Name  string
	Value *Value
}

// Member gives the value of an object's member, nil where there is none.
func (v *Value) Member(name string) *Value { panic("pending") }

// Any gives the value as encoding/json with UseNumber would.
func (v *Value) Any() any { panic("pending") }

// ParseJSON reads exactly one JSON document, strictly: UTF-8, no duplicate
// members, at most 64 levels, numbers of at most 64 characters and finite.
// The error is an Invalid with the path of the fault after loc.
func ParseJSON(data []byte, loc ...any) (*Value, error) { panic("pending") }

// AppendCanonical appends the canonical form: sorted members, exact numbers.
func (v *Value) AppendCanonical(b []byte) []byte { panic("pending") }

// Nearest gives the known name that is most like name, "" where none is close.
func Nearest(name string, known []string) string { panic("pending") }
