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

// storedPrivate is the stored form of Private. The normalized settings mostly repeat the
// submitted settings, which are already in the record. In that case only the difference
// is stored.
type storedPrivate struct {
	Private
	AsSent bool            `json:"asSent,omitempty"` // the submitted settings are already normalized
	Added  json.RawMessage `json:"added,omitempty"`  // normalized settings are the submitted ones plus these members
}

// A stored private part is JSON preceded by a head: a byte of the flags below, then the
// digests that the flags indicate, in order. It takes half the space of plain JSON.

// Flags of the head, for fields omitted from the JSON.
const (
	packedSent             byte = 1 << iota // digest
	packedMeaning                           // digest
	packedDefinition                        // digest
	packedFolder                            // the folder equals the definition
	packedQueuedAtCreation                  // the job was queued when it was created
	packedAsSent                            // the submitted settings are already normalized
)

// digests returns the fields for the digests in the head.
func (s *storedPrivate) digests() [3]struct {
	flag byte
	text *string
} {
	return [3]struct {
		flag byte
		text *string
	}{{packedSent, &s.Sent}, {packedMeaning, &s.Meaning}, {packedDefinition, &s.Definition}}
}

// minRepeated is the minimum length of normalized settings to compare with the submitted
// ones.
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

// pack moves fields into a head where possible.
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
		head[0], s.QueuedAt = head[0]|packedQueuedAtCreation, unit.Time{}
	}
	if s.AsSent {
		head[0], s.AsSent = head[0]|packedAsSent, false
	}
	return head
}

var errPacked = errors.New("the head of a private part is truncated")

// unpack decodes a head and the JSON after it.
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
	if flags&packedQueuedAtCreation != 0 {
		s.QueuedAt = created
	}
	s.AsSent = s.AsSent || flags&packedAsSent != 0
	return nil
}

// DecodeJob decodes the stored bytes of an EncodedJob.
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
