package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"molrun/app/fault"
)

// cursorKey signs cursors, so that a cursor works only for the listing that
// issued it.
type cursorKey []byte

const (
	cursorVersion = 1
	cursorMAC     = 16 // bytes kept of the HMAC
	cursorSize    = 1 + IDSize + cursorMAC
)

// make returns the cursor behind the item id of a listing. listing is its
// organization, scope and filters.
func (k cursorKey) make(id string, listing ...string) string {
	parsed, err := ParseID(id)
	if err != nil {
		return ""
	}
	b := append(make([]byte, 0, cursorSize), cursorVersion)
	b = append(b, parsed[:]...)
	return base64.RawURLEncoding.EncodeToString(append(b, k.mac(b, listing)...))
}

// read returns the ID in a cursor of that listing, "" for no cursor.
func (k cursorKey) read(cursor string, listing ...string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) != cursorSize || b[0] != cursorVersion ||
		!hmac.Equal(b[1+IDSize:], k.mac(b[:1+IDSize], listing)) {
		return "", fault.List(fault.Field{
			Loc: []any{"query", "startKey"}, Type: "value",
			Msg: "this startKey is not of this listing; use the one from the page before with the same filters, or leave it out",
		})
	}
	return IDBytes(b[1 : 1+IDSize]).String(), nil
}

func (k cursorKey) mac(head []byte, listing []string) []byte {
	h := hmac.New(sha256.New, k)
	h.Write(head)
	var length [4]byte
	for _, s := range listing {
		binary.BigEndian.PutUint32(length[:], uint32(len(s)))
		h.Write(length[:])
		h.Write([]byte(s))
	}
	return h.Sum(nil)[:cursorMAC]
}
