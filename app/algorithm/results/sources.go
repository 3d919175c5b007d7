package results

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"

	"molrun/app/base/strictjson"
)

// source is where a figure is found.
type source interface {
	// file returns the pattern of the file's path below the output folder.
	file() string
	// find returns the figure. The error says why there is none.
	find(in *reading, file string) (*strictjson.Value, error)
}

// reading is an output folder of which each file is searched by several metrics.
type reading struct {
	out    fs.FS
	tails  map[string][]byte
	absent map[string]bool
}

// errReportedBefore says that a file is missing, which an earlier metric has reported.
var errReportedBefore = errors.New("the file is not there, as for an earlier metric")

// figure finds the figure of a source.
func (in *reading) figure(s source) (*strictjson.Value, error) {
	file, err := in.locate(s.file())
	if err != nil {
		return nil, err
	}
	if in.absent[file] {
		return nil, errReportedBefore
	}
	v, err := s.find(in, file)
	in.absent[file] = errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular)
	return v, err
}

// locate returns the first file of a pattern, in the order of names.
func (in *reading) locate(pattern string) (string, error) {
	names, err := fs.Glob(in.out, pattern)
	if err != nil || len(names) == 0 {
		return pattern, err // to be opened, which says what is wrong
	}
	return slices.Min(names), nil
}

// tail returns the end of a file.
func (in *reading) tail(file string) ([]byte, error) {
	if text, read := in.tails[file]; read {
		return text, nil
	}
	text, err := readTail(in.out, file, maxScannedFile)
	if err == nil {
		in.tails[file] = text
	}
	return text, err
}

// lastOf is the first group of the last match of a pattern.
type lastOf struct {
	path    string
	pattern *regexp.Regexp
}

func (s lastOf) file() string { return s.path }

func (s lastOf) find(in *reading, file string) (*strictjson.Value, error) {
	text, err := in.tail(file)
	if err != nil {
		return nil, err
	}
	found := lastMatch(s.pattern, text)
	if found == nil {
		return nil, fmt.Errorf("nothing in %s matches its pattern", file)
	}
	return figure(found), nil
}

// countOf is the number of matches of a pattern, 0 if there is none.
type countOf struct {
	path    string
	pattern *regexp.Regexp
}

func (s countOf) file() string { return s.path }

// counted is how many bytes are searched at once. A match does not cross the end of the
// last line in them.
const counted = 1 << 20

func (s countOf) find(in *reading, file string) (*strictjson.Value, error) {
	f, err := openFile(in.out, file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	total, held, buffer := 0, 0, make([]byte, counted)
	for {
		n, err := io.ReadFull(f, buffer[held:])
		text := buffer[:held+n]
		end := len(text)
		if err == nil { // more may follow
			if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
				end = i + 1
			}
		}
		total += len(s.pattern.FindAllIndex(text[:end], -1))
		held = copy(buffer, text[end:])
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF: //nolint:errorlint // as io.ReadFull documents
			return number(float64(total)), nil
		case err != nil:
			return nil, err
		}
	}
}

// openFile opens a regular file: a program may leave a pipe, which would never end.
func openFile(out fs.FS, name string) (fs.File, error) {
	info, err := fs.Stat(out, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s %w", name, errNotRegular)
	}
	return out.Open(name)
}
