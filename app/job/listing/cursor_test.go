package listing

import (
	"bytes"
	"encoding/base64"
	"errors"
	"testing"
)

func TestCursorsAreOfOneListing(t *testing.T) {
	k := CursorKey(bytes.Repeat([]byte("k"), 32))
	c := k.MakeCursor("position", "a", "bc")
	if got, err := k.ReadCursor(c, "a", "bc"); got != "position" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	raw, _ := base64.RawURLEncoding.DecodeString(c)
	altered := bytes.Clone(raw)
	altered[1] ^= 1
	other := CursorKey(bytes.Repeat([]byte("j"), 32))
	for _, tt := range []struct {
		name    string
		key     CursorKey
		cursor  string
		listing []string
		want    error
	}{
		{"parts that join alike", k, c, []string{"ab", "c"}, ErrListing},
		{"fewer parts", k, c, []string{"a"}, ErrListing},
		{"another key", other, c, []string{"a", "bc"}, ErrListing},
		{"altered", k, base64.RawURLEncoding.EncodeToString(altered), []string{"a", "bc"}, ErrListing},
		{"another version", k, base64.RawURLEncoding.EncodeToString(append([]byte{2}, raw[1:]...)), []string{"a", "bc"}, ErrForm},
		{"no position", k, k.MakeCursor("", "a", "bc"), []string{"a", "bc"}, ErrForm},
		{"no base64", k, c + "=", []string{"a", "bc"}, ErrForm},
		{"nothing", k, "", nil, ErrForm},
	} {
		if got, err := tt.key.ReadCursor(tt.cursor, tt.listing...); got != "" || !errors.Is(err, tt.want) {
			t.Errorf("%s: %q, %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

// FuzzCursor checks that forged cursors are rejected.
func FuzzCursor(f *testing.F) {
	k := CursorKey(make([]byte, 32))
	f.Add("AQ")
	f.Add("")
	f.Fuzz(func(t *testing.T, cursor string) {
		if position, err := k.ReadCursor(cursor, "jobs"); err == nil {
			t.Errorf("cursor %q is read as %q", cursor, position)
		}
	})
}
