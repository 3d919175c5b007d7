package blobs

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"

	"github.com/dunglas/httpsfv"
)

// integerField returns a structured field that is a count, such as Upload-Offset. Any
// other value counts as absent, as the draft requires.
func integerField(h http.Header, name string) (n int64, ok bool) {
	n, ok = fieldItem(h, name).(int64)
	if !ok || n < 0 {
		return 0, false
	}
	return n, true
}

// booleanField returns a structured field that is a boolean, such as Upload-Complete. Any
// other value counts as absent.
func booleanField(h http.Header, name string) (value, ok bool) {
	value, ok = fieldItem(h, name).(bool)
	return value, ok
}

// fieldItem returns the value of a field that is a structured item, or nil if the field
// is anything else.
func fieldItem(h http.Header, name string) any {
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

// formatBoolean formats a boolean as a structured field.
func formatBoolean(b bool) string {
	if b {
		return "?1"
	}
	return "?0"
}

// digestLengths lists the supported digest algorithms and their lengths in bytes.
var digestLengths = map[string]int{"sha-256": 32, "sha-512": 64}

// digestField returns the supported digests in a Content-Digest or Repr-Digest, by
// algorithm: sha-256 and sha-512. Others are ignored, as RFC 9530 allows.
func digestField(h http.Header, name string) (map[string][]byte, error) {
	lines := h.Values(name)
	if len(lines) == 0 {
		return nil, nil
	}
	dictionary, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil, fmt.Errorf("use the format of RFC 9530, such as sha-256=:base64:: %w", err)
	}
	all := map[string][]byte{}
	for algorithm, length := range digestLengths {
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

// formatDigest formats a digest as a dictionary with one member.
func formatDigest(algorithm string, sum []byte) string {
	d := httpsfv.NewDictionary()
	d.Add(algorithm, httpsfv.NewItem(sum))
	text, err := httpsfv.Marshal(d)
	if err != nil {
		panic("structured field: " + err.Error()) // fails only if the algorithm is not a valid key
	}
	return text
}

// byteRange is a Content-Range in bytes.
type byteRange struct {
	First, Last int64 // -1 in a query for the offset
	Total       int64 // -1 if not known yet
}

// Size returns the number of bytes in the range, or 0 in a query.
func (r byteRange) Size() int64 {
	if r.IsQuery() {
		return 0
	}
	return r.Last - r.First + 1
}

// IsQuery reports whether r is a query, which has no bytes.
func (r byteRange) IsQuery() bool { return r.First < 0 }

// contentRangeForm allows numbers of at most 15 digits, like structured fields.
var contentRangeForm = regexp.MustCompile(`^(?i:bytes) (?:(\d{1,15})-(\d{1,15})|\*)/(\d{1,15}|\*)$`)

// parseContentRange parses "bytes 0-9/20", "bytes 0-9/*", "bytes */20" and "bytes */*".
func parseContentRange(text string) (r byteRange, err error) {
	m := contentRangeForm.FindStringSubmatch(text)
	if m == nil {
		return r, errors.New("give the byte range and the length of the file, such as bytes 0-1048575/5000000, or * for an unknown length; bytes */5000000 queries the received range")
	}
	r = byteRange{digitsOrNone(m[1]), digitsOrNone(m[2]), digitsOrNone(m[3])}
	switch {
	case r.First > r.Last:
		return r, errors.New("its first byte is after its last")
	case r.Total >= 0 && r.Last >= r.Total:
		return r, errors.New("its last byte is beyond the given length")
	}
	return r, nil
}

// digitsOrNone parses digits; it returns -1 if there are none.
func digitsOrNone(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
