package algorithm

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"molrun/app/protocol"
	"molrun/app/strictjson"
	"molrun/app/tomltree"
	"molrun/app/unit"
)

// algorithmFormat is the version of the file format that this program reads.
const formatVersion = 1

// maxFile bounds the size of an algorithm file.
const maxFile = 256 << 10

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
	if len(text) > maxFile {
		return nil, []Mistake{{file, 1, fmt.Sprintf("the file has %d bytes; an algorithm file may have %d", len(text), maxFile)}}
	}
	r := tomltree.Parse(text, topKeys)
	a := &File{Path: file, Source: slices.Clone(text)}
	if r.Root != nil && readFormat(r) {
		readFile(r, a)
	}
	if wrong := r.Mistakes(); len(wrong) > 0 {
		mistakes := make([]Mistake, len(wrong))
		for i, m := range wrong {
			mistakes[i] = Mistake{file, m.Line, m.Msg}
		}
		return nil, mistakes
	}
	digest := sha256.Sum256(text)
	a.Digest = hex.EncodeToString(digest[:])
	a.schema = settingsSchema(a.Parameters)
	return a, nil
}

// readFormat reports whether the rest of the file can be understood.
func readFormat(r *tomltree.Reader) bool {
	n := r.Root.Member("format")
	if n == nil {
		r.Mistakef(1, "format is missing: begin the file with format = %d", formatVersion)
		return true
	}
	version, ok := r.Integer(n, "format")
	switch {
	case ok && version > formatVersion:
		r.Mistakef(n.Line, "format %d is newer than this molrun reads (%d): upgrade molrun", version, formatVersion)
		return false
	case ok && version < formatVersion:
		r.Mistakef(n.Line, "format must be %d, got %d", formatVersion, version)
	}
	return true
}

func readFile(r *tomltree.Reader, a *File) {
	root := r.Root
	r.Known(root, "this file", topKeys)
	a.Type = r.Name(root, "type", typePattern, `lower-case letters, digits, ".", "_" and "-", at most 64, beginning with a letter or digit`)
	a.Version = r.Name(root, "version", versionPattern, `letters, digits and "._+-", at most 64, beginning with a letter or digit`)
	a.Default = r.Flag(root, "default")
	a.Title = cmp.Or(r.Line(root, "title"), a.Type)
	a.Description = r.Text(root, "description")
	a.Cite = r.Texts(root, "cite")
	a.Categories = r.Texts(root, "categories")
	a.Functions = r.Texts(root, "functions")
	a.Executor = cmp.Or(r.OneOf(root, "executor", "any", "local", "slurm"), "any")
	if n := root.Member("retries"); n != nil {
		a.Retries = int(r.Within(n, "retries", 0, maxRetries))
	}
	a.Resumable = r.Flag(root, "resumable")
	a.MaxRuntime = readMaxRuntime(r, root)
	a.Parameters = readParameters(r, root)
	a.resources = readResources(r, a, root)
	a.Placement = readPlacement(r, root)
	a.Sandbox = readSandbox(r, root)
	a.env = readEnvironment(r, a, root)
	a.steps = readSteps(r, a, root)
	a.validator = readValidator(r, a, root)
	a.metrics = readMetrics(r, root)
	a.failures = readFailures(r, root)
	a.Example = readExample(r, a, root)
}

func readMaxRuntime(r *tomltree.Reader, root *tomltree.Node) time.Duration {
	n := root.Member("max_runtime")
	if n == nil {
		return defaultMaxRuntime
	}
	var d unit.Duration
	err := d.UnmarshalText([]byte(r.Text(root, "max_runtime")))
	switch {
	case n.Kind != strictjson.String:
	case err != nil:
		r.Mistakef(n.Line, "max_runtime: %v", err)
	case time.Duration(d) < time.Second || time.Duration(d) > longestRuntime:
		r.Mistakef(n.Line, "max_runtime must be between 1s and %dd, got %s", longestRuntime/(24*time.Hour), n.Text)
	}
	return time.Duration(d)
}

func readSandbox(r *tomltree.Reader, root *tomltree.Node) protocol.Sandbox {
	t := r.Table(root, "sandbox")
	if t == nil {
		return protocol.Sandbox{Read: []string{}}
	}
	r.Known(t, "[sandbox]", []string{"read", "network"})
	s := protocol.Sandbox{Read: r.Texts(t, "read"), Network: r.Flag(t, "network")}
	for i, path := range s.Read {
		if !filepath.IsAbs(path) {
			r.Mistakef(t.Member("read").Items[i].Line, "%q in sandbox.read must be an absolute path", path)
		}
	}
	return s
}
