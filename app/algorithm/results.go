package algorithm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"molrun/app/fault"
	"molrun/app/strictjson"
	"molrun/app/tomltree"
)

// What is read of an output folder, and what is kept of a figure or message.
const (
	maxMetricsFile = 1 << 20
	maxScannedFile = 16 << 20
	maxFigureText  = 200
)

// metricsFile is what a program writes its own figures to.
const metricsFile = "metrics.json"

// readMetric is one figure of [metrics]. Without a file it only describes a
// figure of metrics.json.
type metric struct {
	name, title, unit, better string
	file                      string
	pattern                   *regexp.Regexp
}

func readMetrics(r *tomltree.Reader, root *tomltree.Node) []metric {
	t := r.Table(root, "metrics")
	if t == nil {
		return nil
	}
	var all []metric
	for _, m := range t.Members {
		if !parameterPattern.MatchString(m.Name) {
			r.Mistakef(m.Line, "%q is no name of a metric: use letters, digits and _", m.Name)
		}
		if r.Is(m.Value, m.Name, strictjson.Object) {
			all = append(all, readMetric(r, m.Name, m.Value))
		}
	}
	return all
}

func readMetric(r *tomltree.Reader, name string, t *tomltree.Node) metric {
	r.Known(t, name, []string{"file", "pattern", "better", "title", "unit"})
	m := metric{
		name: name, title: r.Line(t, "title"), unit: r.Line(t, "unit"),
		better: r.OneOf(t, "better", "higher", "lower"), file: r.Text(t, "file"),
	}
	file, pattern := t.Member("file"), t.Member("pattern")
	switch {
	case (file == nil) != (pattern == nil):
		r.Mistakef(t.Line, "the metric %q needs both file and pattern, or neither where it is a figure of %s", name, metricsFile)
	case file == nil:
		if len(t.Members) == 0 {
			r.Mistakef(t.Line, "the metric %q says nothing: give file and pattern, or a title, unit or better for a figure of %s", name, metricsFile)
		}
		return m
	case file.Kind == strictjson.String && !isResultPath(m.file):
		r.Mistakef(file.Line, "file must be a path below the output folder, such as \"tm.txt\", got %q", m.file)
	}
	if pattern == nil || !r.Is(pattern, "pattern", strictjson.String) {
		return m
	}
	if m.pattern = r.Expression(pattern.Line, "pattern", pattern.Text); m.pattern != nil && m.pattern.NumSubexp() == 0 {
		r.Mistakef(pattern.Line, "pattern needs a group in parentheses around the figure")
	}
	return m
}

// isResultPath reports whether p is a plain relative path of a file.
func isResultPath(p string) bool {
	return fs.ValidPath(p) && p != "." && filepath.IsLocal(p) && !strings.ContainsRune(p, 0)
}

// Results gives the figures of a run as one JSON object: what the program
// wrote to metrics.json, then what [metrics] finds in other files, which wins.
// Nil stands for none. What cannot be read is told, and costs no job its
// success.
func (a *File) Results(out fs.FS) (json.RawMessage, []string) {
	members, problems := ownMetrics(out)
	texts := map[string][]byte{}
	for _, m := range a.metrics {
		if m.file == "" {
			continue
		}
		text, read := texts[m.file]
		if !read {
			var err error
			if text, err = readTail(out, m.file, maxScannedFile); err != nil {
				problems = append(problems, fmt.Sprintf("metric %s: %v", m.name, err))
			}
			texts[m.file] = text
		}
		if text == nil {
			continue
		}
		found := lastMatch(m.pattern, text)
		if found == nil {
			problems = append(problems, fmt.Sprintf("metric %s: nothing in %s matches its pattern", m.name, m.file))
			continue
		}
		members[m.name] = figure(found)
	}
	if len(members) == 0 {
		return nil, problems
	}
	sorted := make([]strictjson.Member, 0, len(members))
	for name, v := range members {
		sorted = append(sorted, strictjson.Member{Name: name, Value: v})
	}
	return strictjson.AppendPlainMembers(nil, sorted), problems
}

// ownMetrics reads metrics.json.
func ownMetrics(out fs.FS) (members map[string]*strictjson.Value, problems []string) {
	members = map[string]*strictjson.Value{}
	info, err := fs.Stat(out, metricsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return members, nil
	}
	var text []byte
	if err == nil && info.Size() > maxMetricsFile {
		err = fmt.Errorf("%s has %d bytes, at most %d are read", metricsFile, info.Size(), maxMetricsFile)
	}
	if err == nil {
		text, err = readTail(out, metricsFile, maxMetricsFile)
	}
	if err != nil {
		return members, []string{err.Error()}
	}
	v, err := strictjson.Parse(text)
	var invalid *fault.Error
	switch {
	case errors.As(err, &invalid):
		return members, []string{fmt.Sprintf("%s is not valid JSON: %s", metricsFile, invalid.Message)}
	case err != nil:
		return members, []string{fmt.Sprintf("%s: %v", metricsFile, err)}
	case v.Kind != strictjson.Object:
		return members, []string{fmt.Sprintf("%s must hold an object, not %v", metricsFile, v.Kind)}
	}
	for _, m := range v.Members {
		members[m.Name] = m.Value
	}
	return members, nil
}

// readTail gives the last bytes of a file. It opens regular files only: a
// program may leave a pipe, which would never end.
func readTail(out fs.FS, name string, most int64) (text []byte, err error) {
	info, err := fs.Stat(out, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
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

// lastMatch gives the first group of the last match, nil where none matches.
func lastMatch(pattern *regexp.Regexp, text []byte) []byte {
	return lastMatchInPieces(pattern, text, 1<<20, 1<<16)
}

// lastMatchInPieces searches a text in pieces from its end, so that many
// matches take little memory. Pieces overlap, since a match may lie across
// their border.
func lastMatchInPieces(pattern *regexp.Regexp, text []byte, size, overlap int) []byte {
	for end := len(text); ; {
		start := max(end-size, 0)
		if start > 0 {
			start += bytes.IndexByte(text[start:start+overlap], '\n') + 1 // where a line begins, if one does
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

// lastInPiece looks at one piece of a text. A match at a cut is left to the
// piece beside: there the pattern may take the cut for the text's own end.
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

// figure gives a found text as a number where it is one.
func figure(found []byte) *strictjson.Value {
	text := strings.TrimSpace(string(found))
	if v, err := strictjson.Parse([]byte(text)); err == nil && v.Kind == strictjson.Number {
		return v
	}
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
		return &strictjson.Value{Kind: strictjson.Number, Text: strconv.FormatFloat(f, 'g', -1, 64)}
	}
	return &strictjson.Value{Kind: strictjson.String, Text: cleanText(found, maxFigureText)}
}

// cleanText gives a program's output as a short line of valid text.
func cleanText(b []byte, most int) string {
	return cut(strings.TrimSpace(printable(b)), most)
}

func printable(b []byte) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, string(bytes.ToValidUTF8(b, []byte("?"))))
}

func cut(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
