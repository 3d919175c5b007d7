package app

import (
	"time"

	"molrun/app/unit"
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

	CompletedAt unit.Time `json:"completedAt,omitzero"`
}

// Completed reports whether the owner has confirmed the bytes.
func (u *Upload) Completed() bool { return !u.CompletedAt.IsZero() }

// StoredFile is what arrived by one PUT.
type StoredFile struct {
	Generation int
	Size       int64
	SHA256     string // hex
}

// DefaultFolder is the folder of uploads that name none.
const DefaultFolder = "inputs"

// DefaultUploadTTL is how long upload links work unless configured otherwise.
const DefaultUploadTTL = 24 * time.Hour

// UploadID identifies an upload for ever. It has the form of a JobID.
type UploadID string
