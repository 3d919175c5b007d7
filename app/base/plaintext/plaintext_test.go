package plaintext

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestTextsOfAllSystemsReadAlike(t *testing.T) {
	for text, want := range map[string]struct {
		text            string
		marked, returns bool
	}{
		"":                     {},
		"a\nb\n":               {text: "a\nb\n"},
		"a\r\nb\r\n":           {text: "a\nb\n"},
		"a\rb\r":               {text: "a\nb\n", returns: true},
		"a\r":                  {text: "a\n", returns: true},
		"a\r\nb\rc\nd":         {text: "a\nb\nc\nd", returns: true},
		"a\r\r\n\n":            {text: "a\n\n\n", returns: true},
		"\uFEFFa\n":            {text: "a\n", marked: true},
		"\uFEFF":               {marked: true},
		"\uFEFF\uFEFFa":        {text: "\uFEFFa", marked: true},
		"\xefa":                {text: "\xefa"},
		"a\uFEFF\r\nÅ\r\n\n\r": {text: "a\uFEFF\nÅ\n\n\n", returns: true},
	} {
		for name, source := range map[string]io.Reader{
			"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)),
			"with its end": iotest.DataErrReader(strings.NewReader(text)),
		} {
			r := NewReader(source)
			got, err := io.ReadAll(r)
			if err != nil || string(got) != want.text || r.Marked != want.marked || r.Returns != want.returns {
				t.Errorf("%q %s: %q, marked %v, returns %v, %v; want %+v", text, name, got, r.Marked, r.Returns, err, want)
			}
		}
		if got := string(Unix([]byte(text))); got != want.text {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestErrorsOfTheSourceArePassedOn(t *testing.T) {
	for _, text := range []string{"", "a", "abcd\r"} {
		r := NewReader(io.MultiReader(strings.NewReader(text), iotest.ErrReader(io.ErrClosedPipe)))
		if _, err := io.ReadAll(r); err != io.ErrClosedPipe {
			t.Errorf("%q: %v", text, err)
		}
	}
}
