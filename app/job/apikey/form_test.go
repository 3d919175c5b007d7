package apikey

import (
	"strings"
	"testing"
)

func TestOnlyWholeKeysAreSplit(t *testing.T) {
	key, id, secret := New()
	if gotID, gotSecret, ok := Split(key); !ok || gotID != id || gotSecret != secret || ID(key) != id {
		t.Fatalf("%s splits into %s, %s, %v", key, gotID, gotSecret, ok)
	}
	for _, bad := range []string{"", "_", "___", key[1:], key[:len(key)-1], key + "_", "x" + key, strings.Replace(key, id, id[1:], 1), strings.Replace(key, secret, secret+"0", 1)} {
		if _, _, ok := Split(bad); ok || ID(bad) != "" {
			t.Errorf("%s is taken for a key", bad)
		}
	}
}
