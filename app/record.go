package app

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"

	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
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

// A stored private part is JSON, behind a head: packedMark, a byte of the flags below,
// and the digests that these name, in their order. It takes half of what everything as
// JSON takes, which is how versions up to schema 5 stored it: without a head.
const (
	packedMark = 1
	packedHead = 2
)

// What the head tells, so that the JSON does not.
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
	head := make([]byte, packedHead, packedHead+3*sha256.Size)
	head[0] = packedMark
	if s.Folder != "" && s.Folder == s.Definition {
		head[1], s.Folder = head[1]|packedFolder, ""
	}
	for _, d := range s.digests() {
		if raw, err := hex.DecodeString(*d.text); err == nil && len(raw) == sha256.Size && hex.EncodeToString(raw) == *d.text {
			head[1] |= d.flag
			head, *d.text = append(head, raw...), ""
		}
	}
	if s.QueuedAt == created && !created.IsZero() {
		head[1], s.QueuedAt = head[1]|packedQueued, unit.Time{}
	}
	if s.AsSent {
		head[1], s.AsSent = head[1]|packedAsSent, false
	}
	return head
}

var errPacked = errors.New("the head of a private part is not whole")

// unpack decodes a head and what follows it.
func (s *storedPrivate) unpack(b []byte, created unit.Time) error {
	if len(b) < packedHead {
		return errPacked
	}
	flags, b := b[1], b[packedHead:]
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

// DecodePrivate decodes EncodedJob.Private into a job that has the rest.
func (j *Job) DecodePrivate(stored []byte) (err error) {
	var s storedPrivate
	if len(stored) > 0 && stored[0] == packedMark {
		err = s.unpack(stored, j.CreatedAt)
	} else {
		err = json.Unmarshal(stored, &s)
	}
	if err != nil {
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

// newRow is a row of a batch that waits to be stored. Rows are much alike, and a job takes a KiB:
// 10,000 of them are kept as what differs.
type newRow struct {
	shown, private []byte // of EncodedJob
	like           *Job   // a row of the same batch that has everything else in common

	id                      JobID
	name, source, executor  string
	settings, normalized    json.RawMessage
	maxRuntime              int64
	row                     int
	meaning, class, limitOf string
	size                    float64
	needs                   placement.Resources
	facts                   algorithm.Facts
	inputs                  []Input
	references              []Reference
	waits                   []Dependency
}

// newRows encodes the rows of a batch. Listeners hear of new ones with their batch.
func newRows(jobs []*Job) ([]newRow, error) {
	rows := make([]newRow, len(jobs))
	for i, j := range jobs {
		e, err := j.encoded(false)
		if err != nil {
			return nil, err
		}
		r := newRow{
			shown: e.Shown, private: e.Private, like: rows[max(0, i-1)].like,
			id: j.ID, name: j.Name, source: j.Source, executor: j.Executor, settings: j.Settings, normalized: j.Private.Normalized,
			maxRuntime: j.MaxRuntime, row: j.Private.Row, meaning: j.Private.Meaning, class: j.Private.Class, limitOf: j.Private.LimitOf,
			size: j.Private.Size, needs: j.Private.Needs, facts: j.Private.Facts,
			inputs: j.Inputs, references: j.Private.References, waits: j.Private.Waits,
		}
		if i == 0 || !reflect.DeepEqual(r.job(), j) {
			r.like = j
		}
		rows[i] = r
	}
	return rows, nil
}

// job makes the job again.
func (r *newRow) job() *Job {
	j := *r.like
	j.ID, j.Name, j.Source, j.Executor, j.Settings, j.Private.Normalized = r.id, r.name, r.source, r.executor, r.settings, r.normalized
	j.MaxRuntime, j.Private.Row, j.Private.Meaning, j.Private.Class, j.Private.LimitOf = r.maxRuntime, r.row, r.meaning, r.class, r.limitOf
	j.Private.Size, j.Private.Needs, j.Private.Facts = r.size, r.needs, r.facts
	j.Inputs, j.Private.References, j.Private.Waits = r.inputs, r.references, r.waits
	return &j
}
