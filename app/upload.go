package app

import (
	"time"

	"molrun/app/base/unit"
)

// Upload is a file uploaded by a user. It is pending until its owner completes it; after
// that its bytes never change.
type Upload struct {
	ID           UploadID  `json:"id"`
	Organization string    `json:"organization"`
	Email        string    `json:"email"` // of the owner
	Folder       string    `json:"folder"`
	Filename     string    `json:"filename"`
	ContentType  string    `json:"contentType"` // required in its PUT request
	CreatedAt    unit.Time `json:"createdAt"`

	// The most recently received data. Generation 0 means none.
	Generation int    `json:"generation,omitempty"`
	Size       int64  `json:"size,omitempty"`
	SHA256     string `json:"sha256,omitempty"` // hex
	CRC32      uint32 `json:"crc32,omitempty"`  // IEEE, as in zip

	CompletedAt unit.Time `json:"completedAt,omitzero"`

	Partial *Partial `json:"partial,omitempty"` // data arriving in parts; nil when complete
}

// Partial describes the durable part of a file that arrives in parts.
type Partial struct {
	Generation int               `json:"generation"`         // identifies its file
	Offset     int64             `json:"offset"`             // durable bytes
	Length     *int64            `json:"length,omitempty"`   // of the whole file; nil until announced
	Digest     []byte            `json:"digest,omitempty"`   // SHA-256 state after Offset bytes
	CRC32      uint32            `json:"crc32,omitempty"`    // of the first Offset bytes, IEEE
	Expected   map[string][]byte `json:"expected,omitempty"` // digests of the whole file, by algorithm
	ReceivedAt unit.Time         `json:"receivedAt"`         // when it was started or last received bytes
}

// Reserved returns the bytes that count toward the quota: the full length, or the bytes
// received so far if the length is unknown.
func (p *Partial) Reserved() int64 {
	switch {
	case p == nil:
		return 0
	case p.Length == nil:
		return p.Offset
	}
	return *p.Length
}

// Has reports whether generation is that of the most recently received data or of the
// data arriving in parts.
func (u *Upload) Has(generation int) bool {
	return u.Generation == generation || u.Partial != nil && u.Partial.Generation == generation
}

// Completed reports whether the owner has confirmed the upload.
func (u *Upload) Completed() bool { return !u.CompletedAt.IsZero() }

// StoredFile describes a file received in one PUT request.
type StoredFile struct {
	Generation int
	Size       int64
	SHA256     string // hex
	CRC32      uint32 // IEEE
}

// DefaultFolder is the folder of uploads without one.
const DefaultFolder = "inputs"

// DefaultUploadTTL is the default validity of upload links.
const DefaultUploadTTL = 24 * time.Hour

// UploadID identifies an upload permanently. It has the form of a JobID.
type UploadID string
