package blobs

import (
	"bytes"
	"crypto/sha512"
	"hash"
	"maps"
	"net/http"
	"slices"

	"molrun/app/base/fault"
)

// expectation holds the digests that a request declares for its bytes, by field and
// algorithm.
type expectation struct {
	fields map[string]map[string][]byte
	sha512 hash.Hash // nil unless a sha-512 digest is expected
}

// expect parses the digest fields with the given names.
func expect(h http.Header, names ...string) (*expectation, error) {
	e := &expectation{fields: map[string]map[string][]byte{}}
	for _, name := range names {
		digests, err := digestField(h, name)
		if err != nil {
			return nil, headerFault(name, err.Error())
		}
		if len(digests) > 0 {
			e.fields[name] = digests
		}
		if digests["sha-512"] != nil {
			e.sha512 = sha512.New()
		}
	}
	return e, nil
}

func headerFault(name, message string) error {
	return fault.List(fault.Field{Loc: []any{"header", name}, Msg: message, Type: "value"})
}

// any reports whether any digest is expected.
func (e *expectation) any() bool { return len(e.fields) > 0 }

// on returns sha256, wrapped to also compute any other expected digest.
func (e *expectation) on(sha256 hash.Hash) hash.Hash {
	if e.sha512 == nil {
		return sha256
	}
	return both{sha256, e.sha512}
}

// both is a hash that also feeds a second one.
type both struct {
	hash.Hash
	also hash.Hash
}

func (b both) Write(p []byte) (int, error) {
	b.also.Write(p) // a hash never fails
	return b.Hash.Write(p)
}

// check rejects bytes whose digests differ from the expected ones.
func (e *expectation) check(sha256 []byte) error {
	found := map[string][]byte{"sha-256": sha256}
	if e.sha512 != nil {
		found["sha-512"] = e.sha512.Sum(nil)
	}
	for _, name := range slices.Sorted(maps.Keys(e.fields)) {
		for algorithm, want := range e.fields[name] {
			if !bytes.Equal(want, found[algorithm]) {
				return digestMismatch(name, algorithm, found[algorithm])
			}
		}
	}
	return nil
}

func digestMismatch(field, algorithm string, found []byte) error {
	return fault.Errorf(fault.DigestMismatch, "The received data has the digest %s, which does not match %s; send it again.",
		formatDigest(algorithm, found), field)
}
