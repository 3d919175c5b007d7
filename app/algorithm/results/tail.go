package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
)

var errNotRegular = errors.New("is not a regular file")

// readTail returns the last bytes of a file. It opens regular files only, since a program
// can leave a pipe, which would block forever.
func readTail(out fs.FS, name string, most int64) (text []byte, err error) {
	info, err := fs.Stat(out, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s %w", name, errNotRegular)
	}
	f, err := out.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if skip := info.Size() - most; skip > 0 {
		if s, ok := f.(io.Seeker); ok {
			_, err = s.Seek(skip, io.SeekStart)
		} else {
			_, err = io.CopyN(io.Discard, f, skip)
		}
		if err != nil {
			return nil, err
		}
	}
	text, err = io.ReadAll(io.LimitReader(f, most))
	if text == nil {
		text = []byte{}
	}
	return text, err
}

// lastMatch returns the first group of the last match, or nil if nothing matches.
func lastMatch(pattern *regexp.Regexp, text []byte) []byte {
	return lastMatchInPieces(pattern, text, 1<<20, 1<<16)
}

// lastMatchInPieces searches text in pieces from its end, so that many matches take
// little memory. The pieces overlap because a match can cross their boundary.
func lastMatchInPieces(pattern *regexp.Regexp, text []byte, size, overlap int) []byte {
	for end := len(text); ; {
		start := max(end-size, 0)
		if start > 0 {
			start += bytes.IndexByte(text[start:start+overlap], '\n') + 1 // to the start of a line, if there is one
		}
		piece := text[start:min(end+overlap, len(text))]
		if found := lastInPiece(pattern, piece, start == 0, start+len(piece) == len(text)); found != nil {
			return found
		}
		if start == 0 {
			return nil
		}
		end = start
	}
}

// lastInPiece searches one piece of the text. It skips a match that touches a cut,
// because the pattern might have taken the cut for the end of the text. Such a match is
// found in the next piece.
func lastInPiece(pattern *regexp.Regexp, piece []byte, isFirst, isLast bool) []byte {
	all := pattern.FindAllSubmatchIndex(piece, -1)
	for i := len(all) - 1; i >= 0; i-- {
		m := all[i]
		if m[2] < 0 || m[0] == 0 && !isFirst || m[1] == len(piece) && !isLast {
			continue
		}
		return piece[m[2]:m[3]:m[3]]
	}
	return nil
}
