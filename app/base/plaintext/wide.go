package plaintext

import (
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// orderOf returns the byte order indicated by the byte order mark of UTF-16 text, or nil
// if it has none.
func orderOf(head []byte) binary.ByteOrder {
	switch {
	case len(head) >= 2 && head[0] == 0xff && head[1] == 0xfe:
		return binary.LittleEndian
	case len(head) >= 2 && head[0] == 0xfe && head[1] == 0xff:
		return binary.BigEndian
	}
	return nil
}

// wide converts UTF-16 text to UTF-8. An unpaired surrogate or a truncated character
// becomes U+FFFD.
type wide struct {
	source io.Reader
	order  binary.ByteOrder
	skip   int // bytes of the byte order mark
	part   [4 << 10]byte
	raw    []byte // not yet decoded
	text   []byte // decoded but not yet read
	err    error
}

func (w *wide) Read(p []byte) (int, error) {
	for len(w.text) == 0 && w.err == nil {
		w.fill()
	}
	n := copy(p, w.text)
	if w.text = w.text[n:]; n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, w.err
}

func (w *wide) fill() {
	n, err := w.source.Read(w.part[:])
	w.raw, w.err = append(w.raw, w.part[:n]...), err
	skipped := min(w.skip, len(w.raw))
	w.raw, w.skip = w.raw[skipped:], w.skip-skipped
	w.decode()
	if errors.Is(err, io.EOF) && len(w.raw) > 0 {
		w.text = utf8.AppendRune(w.text, utf8.RuneError)
	}
}

// decode decodes everything except an incomplete character at the end.
func (w *wide) decode() {
	w.text = w.text[:0]
	for len(w.raw) >= 2 {
		r, size := rune(w.order.Uint16(w.raw)), 2
		if utf16.IsSurrogate(r) {
			if len(w.raw) < 4 {
				return
			}
			if pair := utf16.DecodeRune(r, rune(w.order.Uint16(w.raw[2:]))); pair != utf8.RuneError {
				r, size = pair, 4
			} else {
				r = utf8.RuneError
			}
		}
		w.text, w.raw = utf8.AppendRune(w.text, r), w.raw[size:]
	}
}
