package app

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// What is read of an output folder, and what is kept of a figure or message.
const (
	maxMetricsFile = 1 << 20
	maxScannedFile = 16 << 20
	maxFigureText  = 200
	maxFailureText = 1000
)

// metricsFile is what a program writes its own figures to.
const metricsFile = "metrics.json"

// metric is one figure of [metrics]. Without a file it only describes a
// figure of metrics.json.
type metric struct {
	name, title, unit, better string
	file                      string
	pattern                   *regexp.Regexp
}

func (r *algorithmReader) metrics(root *tomlNode) []metric {
	t := r.table(root, "metrics")
	if t == nil {
		return nil
	}
	var all []metric
	for _, m := range t.members {
		if !parameterPattern.MatchString(m.name) {
			r.mistake(m.line, "%q is no name of a metric: use letters, digits and _", m.name)
		}
		if r.is(m.value, m.name, Object) {
			all = append(all, r.metric(m.name, m.value))
		}
	}
	return all
}

func (r *algorithmReader) metric(name string, t *tomlNode) metric {
	r.known(t, name, []string{"file", "pattern", "better", "title", "unit"})
	m := metric{
		name: name, title: r.line(t, "title"), unit: r.line(t, "unit"),
		better: r.oneOf(t, "better", "higher", "lower"), file: r.text(t, "file"),
	}
	file, pattern := t.member("file"), t.member("pattern")
	switch {
	case (file == nil) != (pattern == nil):
		r.mistake(t.line, "the metric %q needs both file and pattern, or neither where it is a figure of %s", name, metricsFile)
	case file == nil:
		if len(t.members) == 0 {
			r.mistake(t.line, "the metric %q says nothing: give file and pattern, or a title, unit or better for a figure of %s", name, metricsFile)
		}
		return m
	case file.kind == String && !isResultPath(m.file):
		r.mistake(file.line, "file must be a path below the output folder, such as \"tm.txt\", got %q", m.file)
	}
	if pattern == nil || !r.is(pattern, "pattern", String) {
		return m
	}
	if m.pattern = r.expression(pattern.line, "pattern", pattern.text); m.pattern != nil && m.pattern.NumSubexp() == 0 {
		r.mistake(pattern.line, "pattern needs a group in parentheses around the figure")
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
func (a *Algorithm) Results(out fs.FS) (json.RawMessage, []string) {
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
	sorted := make([]Member, 0, len(members))
	for name, v := range members {
		sorted = append(sorted, Member{name, v})
	}
	return appendNormalMembers(nil, sorted), problems
}

// ownMetrics reads metrics.json.
func ownMetrics(out fs.FS) (members map[string]*Value, problems []string) {
	members = map[string]*Value{}
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
	v, err := ParseJSON(text)
	var invalid *Error
	switch {
	case errors.As(err, &invalid):
		return members, []string{fmt.Sprintf("%s is not valid JSON: %s", metricsFile, invalid.Message)}
	case err != nil:
		return members, []string{fmt.Sprintf("%s: %v", metricsFile, err)}
	case v.Kind != Object:
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
	var found []byte
	for at := 0; at <= len(text); {
		m := pattern.FindSubmatchIndex(text[at:])
		if m == nil {
			break
		}
		if m[2] >= 0 {
			found = text[at+m[2] : at+m[3]]
		}
		at += max(m[1], 1)
	}
	return found
}

// figure gives a found text as a number where it is one.
func figure(found []byte) *Value {
	text := strings.TrimSpace(string(found))
	if v, err := ParseJSON([]byte(text)); err == nil && v.Kind == Number {
		return v
	}
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
		return &Value{Kind: Number, Text: strconv.FormatFloat(f, 'g', -1, 64)}
	}
	return &Value{Kind: String, Text: cleanText(found, maxFigureText)}
}

// cleanText gives a program's output as a short line of valid text.
func cleanText(b []byte, most int) string {
	s := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, string(bytes.ToValidUTF8(b, []byte("?"))))
	s = strings.TrimSpace(s)
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// knownFailure is one [[failures]].
type knownFailure struct {
	pattern *regexp.Regexp
	message string // $1 stands for the first group
}

// groupPattern finds $1, ${1} and $$ in the message of a known failure.
var groupPattern = regexp.MustCompile(`\$(?:\$|\d+|\{\d+\})`)

func (r *algorithmReader) failures(root *tomlNode) []knownFailure {
	var all []knownFailure
	for _, t := range r.tables(root, "failures") {
		r.known(t, "[[failures]]", []string{"pattern", "message"})
		for _, key := range []string{"pattern", "message"} {
			if t.member(key) == nil {
				r.mistake(t.line, "%s is missing", key)
			}
		}
		f := knownFailure{message: r.text(t, "message")}
		if n := t.member("message"); n != nil && n.kind == String && strings.TrimSpace(f.message) == "" {
			r.mistake(n.line, "message must say what happened")
		}
		n := t.member("pattern")
		if n == nil || !r.is(n, "pattern", String) {
			continue
		}
		if f.pattern = r.expression(n.line, "pattern", n.text); f.pattern == nil {
			continue
		}
		for _, ref := range groupPattern.FindAllString(f.message, -1) {
			if group := groupNumber(ref); group > f.pattern.NumSubexp() {
				r.mistake(t.member("message").line, "%s in message: pattern has %s", ref, count(f.pattern.NumSubexp(), "group"))
			}
		}
		all = append(all, f)
	}
	return all
}

// groupNumber gives the number in $1 or ${1}, -1 for $$.
func groupNumber(ref string) int {
	n, err := strconv.Atoi(strings.Trim(ref, "${}"))
	switch {
	case errors.Is(err, strconv.ErrRange):
		return math.MaxInt
	case err != nil:
		return -1
	}
	return n
}

// Explain puts the end of a failed job's log into a sentence: that of the
// first of [[failures]] that matches, at its last match. "" where none does.
func (a *Algorithm) Explain(logTail []byte) string {
	for _, f := range a.failures {
		all := f.pattern.FindAllSubmatch(logTail, -1)
		if len(all) == 0 {
			continue
		}
		groups := all[len(all)-1]
		text := groupPattern.ReplaceAllStringFunc(f.message, func(ref string) string {
			if n := groupNumber(ref); n >= 0 {
				return cleanText(groups[n], maxFigureText)
			}
			return "$"
		})
		return cleanText([]byte(text), maxFailureText)
	}
	return ""
}

// exampleFile is the prefix of a file that comes with the algorithms.
const exampleFile = "example:"

func (r *algorithmReader) example(a *Algorithm, root *tomlNode) *Example {
	t := r.table(root, "example")
	if t == nil {
		return nil
	}
	r.known(t, "[example]", []string{"settings", "expect"})
	e := &Example{Files: []string{}, Metrics: map[string][2]float64{}}
	if t.member("settings") == nil {
		r.mistake(t.line, "settings is missing in [example]")
	} else if n := r.table(t, "settings"); n != nil {
		e.Settings = r.exampleSettings(a, n)
	}
	if n := r.table(t, "expect"); n != nil {
		r.expectations(e, n)
	}
	return e
}

func (r *algorithmReader) exampleSettings(a *Algorithm, n *tomlNode) json.RawMessage {
	text := n.appendJSON(nil)
	v, err := ParseJSON(text)
	if err != nil {
		r.mistake(n.line, "the example cannot be used: %v", err)
		return nil
	}
	for _, p := range a.FileParameters() {
		ref := v.Member(p.Name)
		if ref == nil || ref.Kind != String {
			continue
		}
		name, ok := strings.CutPrefix(ref.Text, exampleFile)
		if ok && (name != path.Base(name) || !p.Accepts(name)) {
			r.mistake(n.lineAt([]any{p.Name}), "%q must be %sNAME with NAME ending in %s", ref.Text, exampleFile, orList(p.File))
		}
	}
	checked := Algorithm{Type: cmp.Or(a.Type, "the algorithm"), Parameters: slices.DeleteFunc(slices.Clone(a.Parameters), func(p Parameter) bool { return p.compiled == nil })}
	_, faults := checked.CheckSettings(v)
	for _, f := range faults {
		name, _ := f.Loc[0].(string)
		if p := a.parameter(name); p == nil || p.compiled != nil { // else noted at the parameter
			r.mistake(n.lineAt(f.Loc), "the example's settings: %s %s", joinPath(f.Loc), f.Msg)
		}
	}
	return text
}

func (r *algorithmReader) expectations(e *Example, n *tomlNode) {
	r.known(n, "expect", []string{"files", "metrics"})
	e.Files = r.texts(n, "files")
	for i, file := range e.Files {
		if item := n.member("files").items[i]; item.kind == String && !isResultPath(file) {
			r.mistake(item.line, "%q is no path below the output folder", file)
		}
	}
	t := r.table(n, "metrics")
	if t == nil {
		return
	}
	for _, m := range t.members {
		low, high, ok := rangeOf(m.value)
		if !ok {
			r.mistake(m.line, "%s must be a range of two numbers, [lowest, highest]", m.name)
		}
		e.Metrics[m.name] = [2]float64{low, high}
	}
}

func rangeOf(n *tomlNode) (low, high float64, ok bool) {
	if n.kind != Array || len(n.items) != 2 || n.items[0].kind != Number || n.items[1].kind != Number {
		return 0, 0, false
	}
	low, errLow := strconv.ParseFloat(n.items[0].text, 64)
	high, errHigh := strconv.ParseFloat(n.items[1].text, 64)
	return low, high, errLow == nil && errHigh == nil && low <= high
}
