package plaintext

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"molrun/app/test/must"
)

func packed(t *testing.T, text io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.Copy(w, text)
	must.OK(t, errors.Join(err, w.Close()))
	return b.Bytes()
}

func TestUnpack(t *testing.T) {
	text := strings.Repeat("ATOM\n", 1000)
	whole := packed(t, strings.NewReader(text))
	lost := errors.New("the disk is gone")
	for name, tt := range map[string]struct {
		file io.Reader
		want string // unpacked content
		err  string
	}{
		"text":          {strings.NewReader(text), text, ""},
		"nothing":       {strings.NewReader(""), "", ""},
		"packed":        {bytes.NewReader(whole), text, ""},
		"packed twice":  {io.MultiReader(bytes.NewReader(whole), bytes.NewReader(whole)), text + text, ""},
		"cut":           {bytes.NewReader(whole[:len(whole)-6]), "", "is a damaged gzip file: unexpected EOF"},
		"cut in front":  {bytes.NewReader(whole[:5]), "", "is a damaged gzip file: unexpected EOF"},
		"cut mark":      {bytes.NewReader(whole[:2]), "", "is a damaged gzip file: unexpected EOF"},
		"broken":        {bytes.NewReader(append(bytes.Clone(whole[:len(whole)-8]), make([]byte, 8)...)), "", "is a damaged gzip file: gzip: invalid checksum"},
		"disk":          {iotest.ErrReader(lost), "", lost.Error()},
		"disk, packed":  {io.MultiReader(bytes.NewReader(whole[:20]), iotest.ErrReader(lost)), "", lost.Error()},
		"disk, in mark": {io.MultiReader(bytes.NewReader(whole[:5]), iotest.ErrReader(lost)), "", lost.Error()},
	} {
		var got []byte
		in, isPacked, err := Unpack(tt.file)
		if err == nil {
			got, err = io.ReadAll(in)
		}
		switch {
		case tt.err == "" && (err != nil || string(got) != tt.want || isPacked != strings.HasPrefix(name, "packed")):
			t.Errorf("%s: %d bytes, packed: %v, %v", name, len(got), isPacked, err)
		case tt.err != "" && (err == nil || err.Error() != tt.err):
			t.Errorf("%s: %v; want %s", name, err, tt.err)
		}
	}
}

// TestBombsAreBounded unpacks a file that exceeds the limit.
func TestBombsAreBounded(t *testing.T) {
	in, _, err := Unpack(bytes.NewReader(packed(t, strings.NewReader(strings.Repeat("\n", 1<<20)))))
	must.OK(t, err)
	in.(*unpacked).left = 1<<20 - 1
	if n, err := io.Copy(io.Discard, in); !errors.Is(err, ErrTooLarge) || n >= 1<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}
