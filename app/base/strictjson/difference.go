package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Added returns the members of a normalized object that do not follow from the object as
// sent, or nil if Join can't rebuild the object from them.
func Added(sent, normal json.RawMessage) json.RawMessage {
	was, err := Parse(sent)
	if err != nil || was.Kind != Object {
		return nil
	}
	now, err := Parse(normal)
	if err != nil || now.Kind != Object {
		return nil
	}
	var more []Member
	for _, m := range now.Members {
		if v := was.Member(m.Name); v == nil || !bytes.Equal(AppendPlain(nil, v), m.Value.Raw) {
			more = append(more, m)
		}
	}
	added := AppendPlainMembers(nil, more)
	if again, err := Join(sent, added); err != nil || !bytes.Equal(again, normal) {
		return nil
	}
	return added
}

// Join returns the normalized object: the object as sent, overridden and completed by the
// added members.
func Join(sent, added json.RawMessage) (json.RawMessage, error) {
	was, err := Parse(sent)
	if err != nil {
		return nil, fmt.Errorf("read the object as sent: %w", err)
	}
	more, err := Parse(added)
	if err != nil {
		return nil, fmt.Errorf("read the added members of an object: %w", err)
	}
	all := slices.Clone(more.Members)
	for _, m := range was.Members {
		if more.Member(m.Name) == nil {
			all = append(all, m)
		}
	}
	return AppendPlainMembers(nil, all), nil
}
