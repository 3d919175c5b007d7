// Package plaintext converts text files from any system to UTF-8 text with Unix line
// endings, shortens program output to one line, and finds the closest known name for a
// mistyped one.
package plaintext

import (
	"bytes"
	"errors"
	"io"
)

// mark is the byte order mark at the start of UTF-8 text from Windows programs.
const mark = "\uFEFF"

// Reader converts text to UTF-8 with Unix line endings. Its exported fields are up to
// date after each Read. Bytes that are neither UTF-8 nor UTF-16 remain unchanged.
type Reader struct {
	Marked  bool // the text starts with a byte order mark
	Wide    bool // the text is UTF-16
	Returns bool // a line ends with only a carriage return, as on old Macs

	source   io.Reader
	begun    bool
	returned bool // the last byte was a carriage return
}

// NewReader returns a reader of the text in source.
func NewReader(source io.Reader) *Reader { return &Reader{source: source} }

// Unix converts text as a Reader does.
func Unix(text []byte) []byte {
	unix, _ := io.ReadAll(NewReader(bytes.NewReader(text))) // reading from memory can't fail
	return unix
}

func (r *Reader) Read(p []byte) (int, error) {
	if !r.begun {
		r.begun = true
		if err := r.skipMark(); err != nil {
			return 0, err
		}
	}
	for {
		n, err := r.source.Read(p)
		n = r.unix(p[:n])
		r.Returns = r.Returns || r.returned && errors.Is(err, io.EOF)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

func (r *Reader) skipMark() error {
	head := make([]byte, len(mark))
	n, err := io.ReadFull(r.source, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if r.Marked = string(head[:n]) == mark; r.Marked {
		return nil
	}
	r.source = io.MultiReader(bytes.NewReader(head[:n]), r.source)
	if order := orderOf(head[:n]); order != nil {
		r.Marked, r.Wide = true, true
		r.source = &wide{source: r.source, order: order, skip: 2}
	}
	return nil
}

// unix converts the line ends in a part of the text and returns the new length.
func (r *Reader) unix(part []byte) (n int) {
	if !r.returned && bytes.IndexByte(part, '\r') < 0 {
		return len(part)
	}
	for _, c := range part {
		if r.returned && c == '\n' { // the carriage return has already ended the line
			r.returned = false
			continue
		}
		r.Returns = r.Returns || r.returned
		if r.returned = c == '\r'; r.returned {
			c = '\n'
		}
		part[n] = c
		n++
	}
	return n
}
