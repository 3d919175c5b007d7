package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"molrun/app/strictjson"
)

// storedPrivate is Private as it is stored. The normalised settings mostly repeat
// the settings as sent, which are in the record already; then only the difference
// is stored.
type storedPrivate struct {
	Private
	AsSent bool            `json:"asSent,omitempty"` // the settings as sent are in normal form
	Added  json.RawMessage `json:"added,omitempty"`  // in normal form they are, with these members
}

// minRepeated is the length from which on settings are searched for repetition.
const minRepeated = 256

func (j *Job) encodePrivate() ([]byte, error) {
	s := storedPrivate{Private: j.Private}
	switch normal := j.Private.Normalized; {
	case len(normal) < minRepeated:
	case bytes.Equal(normal, j.Settings):
		s.Normalized, s.AsSent = nil, true
	default:
		if s.Added = addedSettings(j.Settings, normal); s.Added != nil {
			s.Normalized = nil
		}
	}
	return json.Marshal(&s)
}

// DecodePrivate decodes EncodedJob.Private into a job that has the rest.
func (j *Job) DecodePrivate(text []byte) (err error) {
	var s storedPrivate
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	j.Private = s.Private
	switch {
	case s.AsSent:
		j.Private.Normalized = bytes.Clone(j.Settings)
	case s.Added != nil:
		j.Private.Normalized, err = joinSettings(j.Settings, s.Added)
	}
	return err
}

// addedSettings returns the members of normalised settings that do not follow
// from the settings as sent, nil if the two can't be rebuilt from one another.
func addedSettings(sent, normal json.RawMessage) json.RawMessage {
	was, err := strictjson.Parse(sent)
	if err != nil || was.Kind != strictjson.Object {
		return nil
	}
	now, err := strictjson.Parse(normal)
	if err != nil || now.Kind != strictjson.Object {
		return nil
	}
	var more []strictjson.Member
	for _, m := range now.Members {
		if v := was.Member(m.Name); v == nil || !bytes.Equal(strictjson.AppendPlain(nil, v), m.Value.Raw) {
			more = append(more, m)
		}
	}
	added := strictjson.AppendPlainMembers(nil, more)
	if again, err := joinSettings(sent, added); err != nil || !bytes.Equal(again, normal) {
		return nil
	}
	return added
}

// joinSettings returns the normalised settings: those as sent, overridden and
// completed by the added members.
func joinSettings(sent, added json.RawMessage) (json.RawMessage, error) {
	was, err := strictjson.Parse(sent)
	if err != nil {
		return nil, fmt.Errorf("read the settings as sent: %w", err)
	}
	more, err := strictjson.Parse(added)
	if err != nil {
		return nil, fmt.Errorf("read what is added to the settings: %w", err)
	}
	all := slices.Clone(more.Members)
	for _, m := range was.Members {
		if more.Member(m.Name) == nil {
			all = append(all, m)
		}
	}
	return strictjson.AppendPlainMembers(nil, all), nil
}
