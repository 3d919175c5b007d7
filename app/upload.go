package app

import (
	"time"

	"molrun/app/base/unit"
)

// Upload is a file given by a user. It is pending until its owner completes it;
// from then on its bytes never change.
type Upload struct {
	ID           UploadID  `json:"id"`
	Organization string    `json:"organization"`
	Email        string    `json:"email"` // of the owner
	Folder       string    `json:"folder"`
	Filename     string    `json:"filename"`
	ContentType  string    `json:"contentType"` // the one that its PUT must declare
	CreatedAt    unit.Time `json:"createdAt"`

	// Of the bytes received last. Generation 0 is none.
	Generation int    `json:"generation,omitempty"`
	Size       int64  `json:"size,omitempty"`
	SHA256     string `json:"sha256,omitempty"` // hex
	CRC32      uint32 `json:"crc32,omitempty"`  // IEEE, as in zip

	CompletedAt unit.Time `json:"completedAt,omitzero"`

	Partial *Partial `json:"partial,omitempty"` // of bytes that arrive in parts, until all are here
}

// Partial is a file that arrives in parts: as much of it as a crash leaves in place.
type Partial struct {
	Generation int               `json:"generation"`         // names its file
	Offset     int64             `json:"offset"`             // bytes that are durable
	Length     *int64            `json:"length,omitempty"`   // of the whole file, nil until it is announced
	Digest     []byte            `json:"digest,omitempty"`   // state of SHA-256 after Offset bytes
	CRC32      uint32            `json:"crc32,omitempty"`    // of Offset bytes, IEEE
	Expected   map[string][]byte `json:"expected,omitempty"` // digests of the whole file, by algorithm
	ReceivedAt unit.Time         `json:"receivedAt"`         // when it was begun, or bytes arrived last
}

// Reserved returns the bytes that it counts in the quota: all that it will have, or
// what is here of an unknown length.
func (p *Partial) Reserved() int64 {
	switch {
	case p == nil:
		return 0
	case p.Length == nil:
		return p.Offset
	}
	return *p.Length
}

// Has reports whether a generation is the bytes received last, or is arriving in parts.
func (u *Upload) Has(generation int) bool {
	return u.Generation == generation || u.Partial != nil && u.Partial.Generation == generation
}

// Completed reports whether the owner has confirmed the bytes.
func (u *Upload) Completed() bool { return !u.CompletedAt.IsZero() }

// StoredFile is what arrived by one PUT.
type StoredFile struct {
	Generation int
	Size       int64
	SHA256     string // hex
	CRC32      uint32 // IEEE
}

// DefaultFolder is the folder of uploads that name none.
const DefaultFolder = "inputs"

// DefaultUploadTTL is how long upload links work unless configured otherwise.
const DefaultUploadTTL = 24 * time.Hour

// UploadID identifies an upload permanently. It has the form of a JobID.
type UploadID string
