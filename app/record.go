package app

import (
	"bytes"
	"encoding/json"

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
		if s.Added = strictjson.Added(j.Settings, normal); s.Added != nil {
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
		j.Private.Normalized, err = strictjson.Join(j.Settings, s.Added)
	}
	return err
}
