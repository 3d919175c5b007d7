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

// source finds the value of a metric.
type source interface {
	// file returns the path pattern of the file below the output folder.
	file() string
	// find returns the value, or an error that explains why there is none.
	find(in *reading, file string) (*strictjson.Value, error)
}

// reading caches the files of an output folder, which several metrics search.
type reading struct {
	out    fs.FS
	tails  map[string][]byte
	absent map[string]bool
}

// errReportedBefore means that a missing file was already reported for an earlier metric.
var errReportedBefore = errors.New("missing file already reported for an earlier metric")

// figure returns the value found by a source.
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

// locate returns the file that matches a pattern and comes first by name.
func (in *reading) locate(pattern string) (string, error) {
	names, err := fs.Glob(in.out, pattern)
	if err != nil || len(names) == 0 {
		return pattern, err // opening it returns the error
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

// countOf is the number of matches of a pattern.
type countOf struct {
	path    string
	pattern *regexp.Regexp
}

func (s countOf) file() string { return s.path }

// counted is the number of bytes searched at once. A match does not extend past the end
// of the last line in them.
const counted = 1 << 20

func (s countOf) find(in *reading, file string) (*strictjson.Value, error) {
	f, err := openFile(in.out, file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read-only
	total, held, buffer := 0, 0, make([]byte, counted)
	for {
		n, err := io.ReadFull(f, buffer[held:])
		text := buffer[:held+n]
		end := len(text)
		if err == nil { // the file can continue
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

// openFile opens a regular file. A program can leave a pipe, which would block forever.
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
