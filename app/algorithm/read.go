package algorithm

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"molrun/app/nearest"
	"molrun/app/protocol"
	"molrun/app/strictjson"
	"molrun/app/unit"
)

// algorithmFormat is the version of the file format that this program reads.
const formatVersion = 1

// What an algorithm file that says nothing else gets.
const (
	defaultMaxRuntime = 24 * time.Hour
	longestRuntime    = 10 * 365 * 24 * time.Hour
	maxRetries        = 100
)

var (
	typePattern    = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	versionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)
)

var topKeys = []string{
	"format", "type", "version", "default", "title", "description", "cite", "categories", "functions",
	"executor", "retries", "resumable", "max_runtime", "parameters", "resources", "slurm", "sandbox", "env",
	"command", "stdout", "steps", "validate", "metrics", "failures", "example",
}

// ParseAlgorithm reads an algorithm file and finds every mistake in it, each
// with its line. The algorithm is nil where there are any.
func Parse(file string, text []byte) (*File, []Mistake) {
	root, mistakes := readTOML(text)
	r := reader{mistakes: mistakes}
	a := &File{Path: file, Source: slices.Clone(text)}
	if root != nil && r.format(root) {
		r.file(a, root)
	}
	if len(r.mistakes) > 0 {
		return nil, r.sorted(file)
	}
	digest := sha256.Sum256(text)
	a.Digest = hex.EncodeToString(digest[:])
	a.schema = settingsSchema(a.Parameters)
	return a, nil
}

// algorithmReader turns the tree of a file into an algorithm. Its methods
// note what is wrong and go on, so that one reading finds all mistakes.
type reader struct {
	mistakes []Mistake
}

func (r *reader) mistake(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{Line: line, Msg: fmt.Sprintf(format, args...)})
}

// sorted gives the mistakes in the order of the file.
func (r *reader) sorted(file string) []Mistake {
	for i := range r.mistakes {
		r.mistakes[i].File = file
	}
	slices.SortStableFunc(r.mistakes, func(x, y Mistake) int { return cmp.Compare(x.Line, y.Line) })
	return slices.Compact(r.mistakes)
}

// format reports whether the rest of the file can be understood.
func (r *reader) format(root *tomlNode) bool {
	n := root.member("format")
	if n == nil {
		r.mistake(1, "format is missing: begin the file with format = %d", formatVersion)
		return true
	}
	version, ok := r.integer(n, "format")
	switch {
	case ok && version > formatVersion:
		r.mistake(n.line, "format %d is newer than this molrun reads (%d): upgrade molrun", version, formatVersion)
		return false
	case ok && version < formatVersion:
		r.mistake(n.line, "format must be %d, got %d", formatVersion, version)
	}
	return true
}

func (r *reader) file(a *File, root *tomlNode) {
	r.known(root, "this file", topKeys)
	a.Type = r.name(root, "type", typePattern, `lower-case letters, digits, ".", "_" and "-", at most 64, beginning with a letter or digit`)
	a.Version = r.name(root, "version", versionPattern, `letters, digits and "._+-", at most 64, beginning with a letter or digit`)
	a.Default = r.flag(root, "default")
	a.Title = cmp.Or(r.line(root, "title"), a.Type)
	a.Description = r.text(root, "description")
	a.Cite = r.texts(root, "cite")
	a.Categories = r.texts(root, "categories")
	a.Functions = r.texts(root, "functions")
	a.Executor = cmp.Or(r.oneOf(root, "executor", "any", "local", "slurm"), "any")
	a.Retries = int(r.bounded(root, "retries", 0, maxRetries))
	a.Resumable = r.flag(root, "resumable")
	a.MaxRuntime = r.maxRuntime(root)
	a.Parameters = r.parameters(root)
	a.resources = r.resources(a, root)
	a.Placement = r.slurm(root)
	a.Sandbox = r.sandbox(root)
	a.env = r.env(a, root)
	a.steps = r.steps(a, root)
	a.validator = r.validator(a, root)
	a.metrics = r.metrics(root)
	a.failures = r.failures(root)
	a.Example = r.example(a, root)
}

// name reads a required text that has to match a pattern.
func (r *reader) name(t *tomlNode, key string, pattern *regexp.Regexp, rule string) string {
	if t.member(key) == nil {
		r.mistake(t.line, "%s is missing", key)
		return ""
	}
	s := r.text(t, key)
	if t.member(key).kind == strictjson.String && !pattern.MatchString(s) {
		r.mistake(t.member(key).line, "%s %q is not allowed: use %s", key, s, rule)
	}
	return s
}

func (r *reader) maxRuntime(root *tomlNode) time.Duration {
	n := root.member("max_runtime")
	if n == nil {
		return defaultMaxRuntime
	}
	var d unit.Duration
	err := d.UnmarshalText([]byte(r.text(root, "max_runtime")))
	switch {
	case n.kind != strictjson.String:
	case err != nil:
		r.mistake(n.line, "max_runtime: %v", err)
	case time.Duration(d) < time.Second || time.Duration(d) > longestRuntime:
		r.mistake(n.line, "max_runtime must be between 1s and %dd, got %s", longestRuntime/(24*time.Hour), n.text)
	}
	return time.Duration(d)
}

func (r *reader) sandbox(root *tomlNode) protocol.Sandbox {
	t := r.table(root, "sandbox")
	if t == nil {
		return protocol.Sandbox{Read: []string{}}
	}
	r.known(t, "[sandbox]", []string{"read", "network"})
	s := protocol.Sandbox{Read: r.texts(t, "read"), Network: r.flag(t, "network")}
	for i, path := range s.Read {
		if !filepath.IsAbs(path) {
			r.mistake(t.member("read").items[i].line, "%q in sandbox.read must be an absolute path", path)
		}
	}
	return s
}

// known notes the keys of a table that mean nothing, with the nearest that do.
func (r *reader) known(t *tomlNode, where string, keys []string) {
	for _, m := range t.members {
		if slices.Contains(keys, m.name) {
			continue
		}
		near := nearest.Of(m.name, keys)
		switch {
		case where != "this file" && slices.Contains(topKeys, m.name):
			r.mistake(m.line, "%q does not belong to %s: move it above the first [table] of the file", m.name, where)
		case near != "":
			r.mistake(m.line, "unknown key %q in %s; did you mean %q?", m.name, where, near)
		default:
			r.mistake(m.line, "unknown key %q in %s; known are %s", m.name, where, strings.Join(keys, ", "))
		}
	}
}

// is notes a value of the wrong kind.
func (r *reader) is(n *tomlNode, what string, kind strictjson.Kind) bool {
	if n.kind != kind && n.kind != strictjson.Null { // what has no kind was noted before
		r.mistake(n.line, "%s must be %s, got %s", what, kindName(kind), kindName(n.kind))
	}
	return n.kind == kind
}

// kindName names a kind in the words of a scientist who reads a message.
func kindName(k strictjson.Kind) string {
	return map[strictjson.Kind]string{
		strictjson.Null: "nothing", strictjson.Bool: "true or false", strictjson.Number: "a number",
		strictjson.String: "a text", strictjson.Array: "a list", strictjson.Object: "a table",
	}[k]
}

func (r *reader) table(t *tomlNode, key string) *tomlNode {
	n := t.member(key)
	if n == nil || !r.is(n, key, strictjson.Object) {
		return nil
	}
	return n
}

// tables gives the items of [[key]].
func (r *reader) tables(t *tomlNode, key string) []*tomlNode {
	n := t.member(key)
	if n == nil || !r.is(n, key, strictjson.Array) {
		return nil
	}
	var tables []*tomlNode
	for _, item := range n.items {
		if r.is(item, key, strictjson.Object) {
			tables = append(tables, item)
		}
	}
	return tables
}

func (r *reader) text(t *tomlNode, key string) string {
	n := t.member(key)
	if n == nil || !r.is(n, key, strictjson.String) {
		return ""
	}
	if strings.ContainsRune(n.text, 0) {
		r.mistake(n.line, "%s must not contain a NUL character", key)
	}
	return n.text
}

// line reads a text that is shown on one line.
func (r *reader) line(t *tomlNode, key string) string {
	s := r.text(t, key)
	if strings.ContainsAny(s, "\r\n") {
		r.mistake(t.member(key).line, "%s must be one line", key)
	}
	return s
}

func (r *reader) texts(t *tomlNode, key string) []string {
	texts := []string{}
	n := t.member(key)
	if n == nil || !r.is(n, key, strictjson.Array) {
		return texts
	}
	for _, item := range n.items {
		r.is(item, "each of "+key, strictjson.String)
		texts = append(texts, item.text)
	}
	return texts
}

func (r *reader) flag(t *tomlNode, key string) bool {
	n := t.member(key)
	return n != nil && r.is(n, key, strictjson.Bool) && n.text == "true"
}

func (r *reader) oneOf(t *tomlNode, key string, allowed ...string) string {
	s := r.text(t, key)
	if n := t.member(key); n != nil && n.kind == strictjson.String && !slices.Contains(allowed, s) {
		r.mistake(n.line, "%s must be %s, got %q", key, orList(allowed), s)
	}
	return s
}

func orList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, s := range texts {
		quoted[i] = strconv.Quote(s)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}

func (r *reader) integer(n *tomlNode, what string) (int64, bool) {
	if !r.is(n, what, strictjson.Number) {
		return 0, false
	}
	i, err := strconv.ParseInt(n.text, 10, 64)
	if err != nil {
		r.mistake(n.line, "%s must be a whole number, got %s", what, n.text)
	}
	return i, err == nil
}

// bounded reads an integer within limits; 0 where it is missing.
func (r *reader) bounded(t *tomlNode, key string, lowest, highest int64) int64 {
	n := t.member(key)
	if n == nil {
		return 0
	}
	i, ok := r.integer(n, key)
	if ok && (i < lowest || i > highest) {
		r.mistake(n.line, "%s must be between %d and %d, got %d", key, lowest, highest, i)
	}
	return i
}
