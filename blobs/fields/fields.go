// Package fields reads the header fields of uploads in parts: those of
// draft-ietf-httpbis-resumable-upload, digests (RFC 9530) and Content-Range.
package fields

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"github.com/dunglas/httpsfv"
)

// Integer returns a structured field that is a count, such as Upload-Offset. One that
// is anything else counts as absent, as the draft demands.
func Integer(h http.Header, name string) (n int64, ok bool) {
	n, ok = item(h, name).(int64)
	if !ok || n < 0 {
		return 0, false
	}
	return n, true
}

// Boolean returns a structured field that is true or false, such as Upload-Complete.
// One that is anything else counts as absent.
func Boolean(h http.Header, name string) (value, ok bool) {
	value, ok = item(h, name).(bool)
	return value, ok
}

// item returns the value of a field that is an item, nil of any other.
func item(h http.Header, name string) any {
	lines := h.Values(name)
	if len(lines) == 0 {
		return nil
	}
	it, err := httpsfv.UnmarshalItem(lines)
	if err != nil {
		return nil
	}
	return it.Value
}

// Bool formats a boolean as a structured field.
func Bool(b bool) string {
	if b {
		return "?1"
	}
	return "?0"
}

// lengths of the digests that are checked, in bytes.
var lengths = map[string]int{"sha-256": 32, "sha-512": 64}

// Digests returns the digests of a Content-Digest or Repr-Digest that can be checked,
// by algorithm: sha-256 and sha-512. Others are left out, as RFC 9530 allows.
func Digests(h http.Header, name string) (map[string][]byte, error) {
	lines := h.Values(name)
	if len(lines) == 0 {
		return nil, nil
	}
	dictionary, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil, fmt.Errorf("give it as RFC 9530 does, such as sha-256=:base64:, not so: %w", err)
	}
	all := map[string][]byte{}
	for algorithm, length := range lengths {
		member, ok := dictionary.Get(algorithm)
		if !ok {
			continue
		}
		it, ok := member.(httpsfv.Item)
		value, bytes := it.Value.([]byte)
		if !ok || !bytes || len(value) != length {
			return nil, fmt.Errorf("give %s as %d bytes in base64 between colons", algorithm, length)
		}
		all[algorithm] = value
	}
	return all, nil
}

// Digest formats digests as a dictionary of one member.
func Digest(algorithm string, sum []byte) string {
	d := httpsfv.NewDictionary()
	d.Add(algorithm, httpsfv.NewItem(sum))
	text, err := httpsfv.Marshal(d)
	if err != nil {
		panic("fields: " + err.Error()) // only an algorithm that is no key fails
	}
	return text
}

// Range is a Content-Range in bytes.
type Range struct {
	First, Last int64 // -1 where it only asks what is there
	Total       int64 // -1 if it is not known yet
}

// Size returns how many bytes it holds, 0 where it only asks.
func (r Range) Size() int64 {
	if r.Asks() {
		return 0
	}
	return r.Last - r.First + 1
}

// Asks reports whether it names no bytes.
func (r Range) Asks() bool { return r.First < 0 }

// rangeForm has numbers of at most 15 digits, as structured fields do.
var rangeForm = regexp.MustCompile(`^(?i:bytes) (?:(\d{1,15})-(\d{1,15})|\*)/(\d{1,15}|\*)$`)

// ContentRange reads "bytes 0-9/20", "bytes 0-9/*", "bytes */20" and "bytes */*".
func ContentRange(text string) (r Range, err error) {
	m := rangeForm.FindStringSubmatch(text)
	if m == nil {
		return r, errors.New("give the bytes sent and the length of the file, such as bytes 0-1048575/5000000, or * for a length not known yet; bytes */5000000 asks what was received")
	}
	r = Range{number(m[1]), number(m[2]), number(m[3])}
	switch {
	case r.First > r.Last:
		return r, errors.New("its first byte is behind its last")
	case r.Total >= 0 && r.Last >= r.Total:
		return r, errors.New("its last byte is not within the length it gives")
	}
	return r, nil
}

// number reads digits, -1 of none.
func number(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
