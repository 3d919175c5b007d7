package link

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"molrun/app/test/must"
)

func TestSecretIsCreatedOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	secrets := make([]*Secret, 8)
	var wg sync.WaitGroup
	for i := range secrets {
		wg.Go(func() {
			s, err := LoadSecret(dir)
			if err != nil {
				t.Error(err)
			}
			secrets[i] = s
		})
	}
	wg.Wait()
	for _, s := range secrets[1:] {
		must.Equal(t, "two secrets from one directory", s, secrets[0])
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d files, want 1 (err %v)", len(entries), err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600 (err %v)", info.Mode(), err)
	}
}

func TestDerivedKeysDifferByPurposeAndStore(t *testing.T) {
	s, other := newSecret(), newSecret()
	other.Keys = s.Keys
	a := s.Derive("links")
	if len(a) != 32 || !bytes.Equal(a, s.Derive("links")) {
		t.Errorf("Derive returns %d bytes, which differ each time or have the wrong length", len(a))
	}
	if bytes.Equal(a, s.Derive("cursors")) || bytes.Equal(a, other.Derive("links")) || bytes.Equal(a, s.Keys[0].Key) {
		t.Error("keys of two purposes or stores are the same")
	}
}

func TestNewestKeySigns(t *testing.T) {
	s := newSecret()
	older := newSecret().Keys[0]
	older.CreatedAt = s.Keys[0].CreatedAt.Add(-time.Hour)
	s.Keys = append(s.Keys, older)
	must.Equal(t, "newest", s.newest().ID, s.Keys[0].ID)
}

func TestUnsafeSecretIsRefused(t *testing.T) {
	good := newSecret()
	encode := func(change func(*Secret)) string {
		s := Secret{StoreID: good.StoreID, Keys: []SecretKey{good.Keys[0]}}
		change(&s)
		data, err := json.Marshal(s)
		must.OK(t, err)
		return string(data)
	}
	tests := []struct {
		name, content string
		mode          os.FileMode
		want          string
	}{
		{"readable by the group", encode(func(*Secret) {}), 0o640, "chmod 600"},
		{"readable by all", encode(func(*Secret) {}), 0o604, "chmod 600"},
		{"empty file", "", 0o600, "damaged"},
		{"cut off", encode(func(*Secret) {})[:40], 0o600, "damaged"},
		{"no store", encode(func(s *Secret) { s.StoreID = "" }), 0o600, "storeId"},
		{"no keys", encode(func(s *Secret) { s.Keys = nil }), 0o600, "keys"},
		{"empty key", encode(func(s *Secret) { s.Keys[0].Key = nil }), 0o600, "0 bytes"},
		{"short key", encode(func(s *Secret) { s.Keys[0].Key = s.Keys[0].Key[:31] }), 0o600, "31 bytes"},
		{"zero key", encode(func(s *Secret) { s.Keys[0].Key = make([]byte, 32) }), 0o600, "zeros"},
		{"no kid", encode(func(s *Secret) { s.Keys[0].ID = "" }), 0o600, "kid"},
		{"kid twice", encode(func(s *Secret) { s.Keys = append(s.Keys, s.Keys[0]) }), 0o600, "kid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, "secret")
			must.OK(t, os.WriteFile(name, []byte(tt.content), 0o600))
			must.OK(t, os.Chmod(name, tt.mode))
			must.Fail(t, "the error", must.Error2(LoadSecret(dir)), tt.want)
			if left, _ := os.ReadFile(name); string(left) != tt.content {
				t.Error("the file was changed")
			}
		})
	}
}
