package app

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"

	"molrun/app/algorithm"
	"molrun/app/strictjson"
)

// hashVersion begins every hash, so that another canonical form can tell its
// own from these.
const hashVersion = "molrun 1"

// hash gives the SHA-256 of the parts, each with its length before it, in hex.
func hash(parts ...[]byte) string {
	h := sha256.New()
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sentHash names a request body of one kind by what was sent.
func sentHash(kind string, body *strictjson.Value) string {
	return hash([]byte(hashVersion), []byte(kind+" as sent"), body.AppendCanonical(nil))
}

// meaningHash names work by what it does: algorithm, version and settings
// with defaults filled in, files as they were written.
func meaningHash(kind string, a *algorithm.File, rows ...json.RawMessage) string {
	parts := [][]byte{[]byte(hashVersion), []byte(kind), []byte(a.Type), []byte(a.Version)}
	for _, row := range rows {
		parts = append(parts, row)
	}
	return hash(parts...)
}

// sameWork reports whether both ask for the same, as sent or as meant.
func (j *Job) sameWork(other *Job) bool {
	a, b := &j.Private, &other.Private
	return a.Sent == b.Sent || a.Meaning == b.Meaning
}
