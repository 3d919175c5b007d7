package apikey

import (
	"fmt"
	"hash/crc32"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

func TestKeyFormatAndChecksum(t *testing.T) {
	key, _, _ := New()
	if !regexp.MustCompile(`^molrun_[a-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$`).MatchString(key) {
		t.Fatalf("key %s has an unexpected format", key)
	}
	i := strings.LastIndexByte(key, '_')
	// In base 62, big.Int uses a to z before A to Z, and keys use the opposite order.
	want := strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, fmt.Sprintf("%6s", big.NewInt(int64(crc32.ChecksumIEEE([]byte(key[:i])))).Text(62)))
	if want = strings.ReplaceAll(want, " ", "0"); key[i+1:] != want {
		t.Errorf("checksum of %s, want %s", key, want)
	}
}

func TestOnlyWholeKeysAreSplit(t *testing.T) {
	key, id, secret := New()
	if gotID, gotSecret, ok := Split(key); !ok || gotID != id || gotSecret != secret || ID(key) != id {
		t.Fatalf("%s splits into %s, %s, %v", key, gotID, gotSecret, ok)
	}
	for _, bad := range []string{"", "_", "___", key[1:], key[:len(key)-1], key + "_", "x" + key, strings.Replace(key, id, id[1:], 1), strings.Replace(key, secret, secret+"0", 1)} {
		if _, _, ok := Split(bad); ok || ID(bad) != "" {
			t.Errorf("%s is accepted as a key", bad)
		}
	}
}
