package listing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
)

// CursorKey is a key of at least 32 bytes that signs cursors.
type CursorKey []byte

const (
	version = 1
	macSize = 16 // bytes kept of the HMAC
)

// Errors of ReadCursor.
var (
	ErrForm    = errors.New("this is not a cursor")
	ErrListing = errors.New("the cursor belongs to another listing")
)

// MakeCursor returns the cursor of a position in a listing. listing identifies the
// listing: everything that the position depends on.
func (k CursorKey) MakeCursor(position string, listing ...string) string {
	b := append(make([]byte, 0, 1+len(position)+macSize), version)
	b = append(b, position...)
	return base64.RawURLEncoding.EncodeToString(append(b, k.mac(b, listing)...))
}

// ReadCursor returns the position in a cursor. ErrListing means that the cursor is
// well-formed but was not made for this listing.
func (k CursorKey) ReadCursor(cursor string, listing ...string) (position string, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	end := len(b) - macSize
	switch {
	case err != nil || end <= 1 || b[0] != version:
		return "", ErrForm
	case !hmac.Equal(b[end:], k.mac(b[:end], listing)):
		return "", ErrListing
	}
	return string(b[1:end]), nil
}

func (k CursorKey) mac(head []byte, listing []string) []byte {
	h := hmac.New(sha256.New, k)
	h.Write(head)
	var length [4]byte
	for _, s := range listing {
		binary.BigEndian.PutUint32(length[:], uint32(len(s)))
		h.Write(length[:])
		h.Write([]byte(s))
	}
	return h.Sum(nil)[:macSize]
}
