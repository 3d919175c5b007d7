package algorithm

import (
	"encoding/json"
	"fmt"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
)

// CheckSettings returns the settings with constant defaults filled in, and every error.
// The settings are nil if there are errors. Paths of errors are relative to the settings.
// Relations between settings are checked only if each setting is valid. A null counts as
// no value unless the parameter accepts null.
func (a *File) CheckSettings(v *strictjson.Value) (*strictjson.Value, []fault.Field) {
	if v == nil || v.Kind != strictjson.Object {
		return nil, []fault.Field{{Loc: []any{}, Msg: "settings must be an object", Type: "type"}}
	}
	faults := a.unknownSettings(v)
	var members []strictjson.Member
	for i := range a.Parameters {
		p := &a.Parameters[i]
		value := v.Member(p.Name)
		if value == nil || value.Kind == strictjson.Null && !p.compiled.AcceptsNull() {
			value = p.fallback
		} else {
			faults = append(faults, p.faults(value)...)
		}
		switch {
		case value != nil:
			members = append(members, strictjson.Member{Name: p.Name, Value: value})
		case p.Required:
			faults = append(faults, fault.Field{Loc: []any{p.Name}, Msg: "is required", Type: "missing"})
		}
	}
	if len(faults) == 0 {
		faults = a.relations.checkValues(members, nil)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return &strictjson.Value{Kind: strictjson.Object, Members: members}, nil
}

// Normalize returns checked settings in the form that programs read, with sorted members
// and with exact numbers in plain notation.
func Normalize(settings *strictjson.Value) json.RawMessage {
	return strictjson.AppendPlain(nil, settings)
}

func (a *File) unknownSettings(v *strictjson.Value) []fault.Field {
	var faults []fault.Field
	for _, m := range v.Members {
		if a.Parameters.Named(m.Name) != nil {
			continue
		}
		faults = append(faults, fault.Field{Loc: []any{m.Name}, Msg: a.NoSetting(m.Name), Type: "unknown"})
	}
	return faults
}

// NoSetting returns the message for an unknown setting, with a suggestion.
func (a *File) NoSetting(name string) string {
	names := a.Parameters.names()
	msg := fmt.Sprintf("%s has no setting %q", a.Type, name)
	switch near := plaintext.Nearest(name, names); {
	case near != "":
		msg += fmt.Sprintf("; did you mean %q?", near)
	case len(names) > 0:
		msg += "; it has " + strings.Join(names, ", ")
	}
	return msg
}
