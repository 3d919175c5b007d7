package app

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
)

// storedPrivate is Private as it is stored. The normalised settings mostly repeat
// the settings as sent, which are in the record already; then only the difference
// is stored.
type storedPrivate struct {
	Private
	AsSent bool            `json:"asSent,omitempty"` // the settings as sent are in normal form
	Added  json.RawMessage `json:"added,omitempty"`  // in normal form they are, with these members
}

// A stored private part is JSON, behind a head: a byte of the flags below, and the digests
// that these name, in their order. It takes half of what everything as JSON takes.

// Members of the head, which the JSON leaves out.
const (
	packedSent       byte = 1 << iota // a digest
	packedMeaning                     // a digest
	packedDefinition                  // a digest
	packedFolder                      // the folder is that of the definition
	packedQueued                      // the job was queued when it was created
	packedAsSent                      // the settings as sent are in normal form
)

// digests returns where the digests of the head belong.
func (s *storedPrivate) digests() [3]struct {
	flag byte
	text *string
} {
	return [3]struct {
		flag byte
		text *string
	}{{packedSent, &s.Sent}, {packedMeaning, &s.Meaning}, {packedDefinition, &s.Definition}}
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
	head := s.pack(j.CreatedAt)
	text, err := json.Marshal(&s)
	return append(head, text...), err
}

// pack moves into a head what has a place there.
func (s *storedPrivate) pack(created unit.Time) []byte {
	head := make([]byte, 1, 1+3*sha256.Size)
	if s.Folder != "" && s.Folder == s.Definition {
		head[0], s.Folder = head[0]|packedFolder, ""
	}
	for _, d := range s.digests() {
		if raw, err := hex.DecodeString(*d.text); err == nil && len(raw) == sha256.Size && hex.EncodeToString(raw) == *d.text {
			head[0] |= d.flag
			head, *d.text = append(head, raw...), ""
		}
	}
	if s.QueuedAt == created && !created.IsZero() {
		head[0], s.QueuedAt = head[0]|packedQueued, unit.Time{}
	}
	if s.AsSent {
		head[0], s.AsSent = head[0]|packedAsSent, false
	}
	return head
}

var errPacked = errors.New("the head of a private part is not whole")

// unpack decodes a head and what follows it.
func (s *storedPrivate) unpack(b []byte, created unit.Time) error {
	if len(b) == 0 {
		return errPacked
	}
	flags, b := b[0], b[1:]
	for _, d := range s.digests() {
		if flags&d.flag == 0 {
			continue
		}
		if len(b) < sha256.Size {
			return errPacked
		}
		*d.text, b = hex.EncodeToString(b[:sha256.Size]), b[sha256.Size:]
	}
	if err := json.Unmarshal(b, s); err != nil {
		return err
	}
	if flags&packedFolder != 0 {
		s.Folder = s.Definition
	}
	if flags&packedQueued != 0 {
		s.QueuedAt = created
	}
	s.AsSent = s.AsSent || flags&packedAsSent != 0
	return nil
}

// DecodeJob decodes the bytes of EncodedJob.
func DecodeJob(shown, private []byte) (*Job, error) {
	j := new(Job)
	if err := json.Unmarshal(shown, j); err != nil {
		return nil, fmt.Errorf("read the record of a job: %w", err)
	}
	if err := j.decodePrivate(private); err != nil {
		return nil, fmt.Errorf("read the private part of a job: %w", err)
	}
	return j, nil
}

func (j *Job) decodePrivate(stored []byte) (err error) {
	var s storedPrivate
	if err := s.unpack(stored, j.CreatedAt); err != nil {
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
