package algorithm

import (
	"encoding/json"
	"fmt"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
)

// CheckSettings returns the settings with constant defaults filled in, nil if there are
// faults, and every fault; a fault's path begins below the settings. Whether settings go together is only checked where each is
// right. A null counts as no value, unless the parameter
// accepts null.
func (a *File) CheckSettings(v *strictjson.Value) (*strictjson.Value, []fault.Field) {
	if v == nil || v.Kind != strictjson.Object {
		return nil, []fault.Field{{Loc: []any{}, Msg: "settings must be an object", Type: "type"}}
	}
	faults := a.unknownSettings(v)
	var members []strictjson.Member
	for i := range a.Parameters {
		p := &a.Parameters[i]
		value := v.Member(p.Name)
		if value == nil || value.Kind == strictjson.Null && !p.compiled.TakesNull() {
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

// Normalize returns checked settings as programs read them: members sorted, numbers plain
// and exact.
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

// NoSetting says that the algorithm has no setting of this name, and which is meant.
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
