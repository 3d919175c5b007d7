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

	"molrun/app/algorithm/results"
	"molrun/app/placement"
	"molrun/app/protocol"
	"molrun/app/strictjson"
	"molrun/app/tomltree"
	"molrun/app/unit"
)

// formatVersion is the version of the file format that this program reads.
const formatVersion = 1

// maxFile bounds the size of an algorithm file.
const maxFile = 256 << 10

// Defaults and limits of an algorithm file.
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
	"command", "stdout", "steps", "validate", "metrics", "failures", "views", "example", "estimate",
}

// Parse reads an algorithm file and finds every mistake in it, each with its
// line. The File is nil where there are any.
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

// readFormat reports whether this program understands the rest of the file.
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
	a.MaxRuntime = readMaxRuntime(r)
	a.Parameters = readParameters(r)
	a.resources = readResources(r, a.Parameters)
	a.size = readEstimate(r, a.Parameters)
	a.Placement = readPlacement(r)
	a.Sandbox = readSandbox(r)
	a.env = readEnvironment(r, a.Parameters)
	a.steps = readSteps(r, a.Parameters)
	a.checker = readChecker(r, a.Parameters)
	a.Metrics = results.ReadMetrics(r)
	a.Failures = results.ReadFailures(r)
	a.Views = results.ReadViews(r)
	a.Example = readExample(r, a)
}

func readMaxRuntime(r *tomltree.Reader) time.Duration {
	n := r.Root.Member("max_runtime")
	if n == nil {
		return defaultMaxRuntime
	}
	var d unit.Duration
	err := d.UnmarshalText([]byte(r.Text(r.Root, "max_runtime")))
	switch {
	case n.Kind != strictjson.String:
	case err != nil:
		r.Mistakef(n.Line, "max_runtime: %v", err)
	case time.Duration(d) < time.Second || time.Duration(d) > longestRuntime:
		r.Mistakef(n.Line, "max_runtime must be between 1s and %dd, got %s", longestRuntime/(24*time.Hour), n.Text)
	}
	return time.Duration(d)
}

func readSandbox(r *tomltree.Reader) protocol.Sandbox {
	t := r.Table(r.Root, "sandbox")
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

// readPlacement reads where on a cluster the jobs go. The configuration says
// which options are allowed; an algorithm with others is not ready.
func readPlacement(r *tomltree.Reader) placement.Placement {
	t := r.Table(r.Root, "slurm")
	if t == nil {
		return placement.Placement{}
	}
	r.Known(t, "[slurm]", []string{"partition", "account", "qos", "constraint", "options"})
	p := placement.Placement{
		Partition: r.Line(t, "partition"), Account: r.Line(t, "account"), QOS: r.Line(t, "qos"),
		Constraint: r.Line(t, "constraint"), Options: r.Texts(t, "options"),
	}
	if field, msg := p.Check(); field != "" {
		r.Mistakef(t.Member(field).Line, "%s: %s", field, msg)
	}
	return p
}
