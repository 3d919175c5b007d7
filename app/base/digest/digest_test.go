package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

func TestPartsHaveTheirLengths(t *testing.T) {
	sum := sha256.Sum256([]byte("\x00\x00\x00\x00\x00\x00\x00\x02ab\x00\x00\x00\x00\x00\x00\x00\x01c"))
	if got, want := Parts([]byte("ab"), []byte("c")), hex.EncodeToString(sum[:]); got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
	if Parts([]byte("ab"), []byte("c")) == Parts([]byte("a"), []byte("bc")) {
		t.Error("different parts have the same digest")
	}
}
