package plaintext

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
	"unicode/utf8"

	"molrun/app/test/must"
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
		must.Equal(t, fmt.Sprintf("%q", text), string(Unix([]byte(text))), want.text)
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

func utf16Of(text string, order binary.AppendByteOrder) string {
	b := order.AppendUint16(nil, 0xfeff)
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

func TestUTF16IsReadLikeUTF8(t *testing.T) {
	for _, text := range []string{"", "a\nÅ\n", "a😀b\n", strings.Repeat("長い\n", 5_000)} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			wide := utf16Of(strings.ReplaceAll(text, "\n", "\r\n"), order)
			for name, source := range map[string]io.Reader{
				"at once": strings.NewReader(wide), "byte by byte": iotest.OneByteReader(strings.NewReader(wide)),
			} {
				r := NewReader(source)
				if got, err := io.ReadAll(r); err != nil || string(got) != text || !r.Wide || !r.Marked {
					t.Errorf("%.20q %s: %.40q, %v", text, name, got, err)
				}
			}
		}
	}
	for wide, want := range map[string]string{"\xff\xfea\x00b": "a\uFFFD", "\xfe\xff\xd8\x00\x00a": "\uFFFDa", "\xff\xfe\x00\xd8": "\uFFFD"} {
		must.Equal(t, fmt.Sprintf("%q", wide), string(Unix([]byte(wide))), want)
	}
}

func TestDecodeReadsTextOrSaysWhyNot(t *testing.T) {
	for _, tt := range []struct{ text, want, wrong string }{
		{"\uFEFFKrüger\r\n", "Krüger\n", ""},
		{utf16Of("Krüger", binary.LittleEndian), "Krüger", ""},
		{"Kr\xfcger\r\n\x84x\x93 \x80", "Krüger\n„x“ €", ""},
		{"a\nKrüger\nKr\xfcger", "", "line 3: the text is only partly UTF-8; save it as UTF-8"},
		{"a\rKr\x9fger\r", "", "line 2: the text has old Mac line endings and letters in an unknown encoding; save it as UTF-8"},
		{"a\n\x81\n", "", "line 2: the text is neither UTF-8 nor Windows-1252 (byte 0x81); save it as UTF-8"},
		{"a\nb\x00", "", "line 2: the text has the control character U+0000; is this a text file?"},
		{"a\x00b\x00\n\x00c\x00", "", "line 1: the text is UTF-16 without a byte order mark; save it as UTF-8"},
	} {
		got, wrong := Decode([]byte(tt.text))
		said := ""
		if wrong != nil {
			said = wrong.Error()
		}
		if string(got) != tt.want || said != tt.wrong {
			t.Errorf("%q: %q, %s", tt.text, got, said)
		}
	}
}

// FuzzDecode checks that any bytes yield either an error message or text that Decode
// returns unchanged.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("\xff\xfea\x00\r\x00\n\x00"))
	f.Add([]byte("Kr\xfcger\r"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, wrong := Decode(text)
		if wrong != nil {
			if wrong.Line < 1 || wrong.Msg == "" || got != nil {
				t.Errorf("%q, %v", got, wrong)
			}
			return
		}
		if again, wrong := Decode(got); !utf8.Valid(got) || strings.Contains(string(got), "\r") || wrong != nil || !strings.HasPrefix(string(got), "\uFEFF") && !bytes.Equal(again, got) {
			t.Errorf("%q becomes %q, then %q, %v", text, got, again, wrong)
		}
	})
}
