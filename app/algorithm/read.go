package algorithm

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/folder"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/results"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
	"molrun/app/task/protocol"
)

// format is the version of the file format.
const format = 1

// maxFile limits the size of an algorithm file.
const maxFile = 256 << 10

// Parse reads an algorithm file and finds every error in it, with its line. The File is
// nil if there are errors.
func Parse(file string, text []byte) (*File, []Mistake) {
	if folder.HasList(text) {
		return nil, []Mistake{{File: file, Line: 1, Msg: "the file ends with a list of folder files, which only molrun writes: remove it"}}
	}
	return parseFile(file, text, nil)
}

// ParseFolder reads the algorithm file of a folder.
func ParseFolder(file string, f *folder.Folder) (*File, []Mistake) {
	text, err := f.ReadFile(folder.Main)
	if err != nil {
		return nil, []Mistake{{File: file, Line: 1, Msg: fmt.Sprintf("the file can't be read: %v", err)}}
	}
	if folder.HasList(text) {
		return Parse(file, text)
	}
	return parseFile(file, text, f)
}

// parseStored reads the Source of a File.
func parseStored(file string, source []byte) (*File, []Mistake) {
	text, f, err := folder.Split(source)
	if err != nil {
		return nil, []Mistake{{File: file, Line: 1, Msg: err.Error()}}
	}
	return parseFile(file, text, f)
}

func parseFile(file string, text []byte, f *folder.Folder) (*File, []Mistake) {
	if len(text) > maxFile {
		return nil, []Mistake{{File: file, Line: 1, Msg: fmt.Sprintf("the file has %d bytes; the limit for algorithm files is %d", len(text), maxFile)}}
	}
	r := tomltree.Parse(text)
	a := &File{Path: file, Source: slices.Clone(text), Folder: f}
	if r.Root != nil && readFormat(r) {
		readFile(r, a)
	}
	if wrong := r.Errors(); len(wrong) > 0 {
		mistakes := make([]Mistake, len(wrong))
		for i, m := range wrong {
			mistakes[i] = Mistake{File: file, Line: m.Line, Msg: m.Msg}
		}
		return nil, mistakes
	}
	if f != nil {
		a.Source = f.Append(text)
	}
	digest := sha256.Sum256(a.Source)
	a.Digest = hex.EncodeToString(digest[:])
	a.schema = settingsSchema(a.Parameters)
	return a, nil
}

// readFormat reads the format version. It reports whether this program can read the rest
// of the file.
func readFormat(r *tomltree.Reader) bool {
	n := r.Root.Member("format")
	if n == nil {
		r.Errorf(1, "format is missing: begin the file with format = %d", format)
		return true
	}
	version, ok := r.Integer(n, "format")
	switch {
	case n.Kind != strictjson.Number:
		r.Errorf(n.Line, "format must be a number, got %s", tomltree.KindName(n.Kind))
	case ok && version > format:
		r.Errorf(n.Line, "format %d is newer than this version of molrun can read (%d): upgrade molrun", version, format)
		return false
	case ok && version < format:
		r.Errorf(n.Line, "format must be %d, got %d", format, version)
	}
	return true
}

func readFile(r *tomltree.Reader, a *File) {
	checkFormat(r)
	root := r.Root
	a.Type = r.Text(root, "type")
	a.Version = r.Text(root, "version")
	a.Default = r.Flag(root, "default")
	a.Status = r.Text(root, "status")
	a.Title = cmp.Or(r.Line(root, "title"), a.Type)
	a.Description = r.Text(root, "description")
	a.Install = r.Text(root, "install")
	a.Cite = r.Texts(root, "cite")
	a.Categories = r.Texts(root, "categories")
	a.Functions = r.Texts(root, "functions")
	a.Keywords = r.Texts(root, "keywords")
	a.Executor = cmp.Or(r.Text(root, "executor"), "any")
	if n := root.Member("retries"); n != nil {
		a.Retries = int(n.Int())
	}
	a.Resumable = r.Flag(root, "resumable")
	a.Parameters = readParameters(r)
	readMakers(r, a.Parameters)
	a.relations = readRelations(r, a.Parameters)
	a.MaxRuntime, a.runtime = readMaxRuntime(r, a.Parameters, a.relations.derived)
	a.resources = readResources(r, a.Parameters, a.relations.derived)
	a.Retry = readRetry(r, a.resources.memory)
	a.size = readEstimate(r, a.Parameters, a.relations.derived)
	a.ExpectedSeconds, a.SecondsPerSize = readExpected(r)
	a.Placement = readPlacement(r)
	a.Sandbox = readSandbox(r)
	readProgramSource(r, &a.Sandbox)
	a.programs = readPrograms(r)
	c := commandReader{
		Reader: r, parameters: a.Parameters, derived: a.relations.derived, allowed: command.Placeholders,
		folder: a.Folder, siteNames: &a.whereabouts.names, conditions: &a.conditions,
	}
	a.texts = readTexts(c)
	a.env = c.variables(root)
	a.steps = readSteps(c)
	if a.Sandbox.Image == "" {
		a.conda = readConda(c, a.steps)
	}
	a.checker = readChecker(c)
	a.whereabouts.assets = readAssets(c)
	a.versionOf = readVersion(c)
	a.probe = readProbe(c)
	slices.Sort(a.whereabouts.names)
	a.Metrics = results.ReadMetrics(r)
	checkComparable(r, a)
	a.Failures = results.ReadFailures(r)
	a.Warnings = results.ReadWarnings(r)
	a.shown = readShown(r)
	a.Outputs = results.ReadOutputs(r)
	a.Views = results.ReadViews(r, a.Outputs)
	a.Metrics.ApplyScales(a.Views)
	a.Example = readExample(r, a)
}

// checkComparable checks that the names listed under "same" in metrics are parameters.
func checkComparable(r *tomltree.Reader, a *File) {
	for _, m := range a.Metrics {
		for i, name := range m.Same {
			if a.Parameters.Named(name) == nil {
				r.Errorf(r.Root.Member("metrics").Member(m.Name).Member("same").Items[i].Line, "%q in same of the metric %q is not a parameter", name, m.Name)
			}
		}
	}
}

func readSandbox(r *tomltree.Reader) protocol.Sandbox {
	t := r.Table(r.Root, "sandbox")
	if t == nil {
		return protocol.Sandbox{Read: []string{}}
	}
	s := protocol.Sandbox{Read: r.Texts(t, "read"), Network: r.Flag(t, "network"), Required: r.Flag(t, "required")}
	for i, path := range s.Read {
		if !filepath.IsAbs(path) {
			r.Errorf(t.Member("read").Items[i].Line, "%q in sandbox.read must be an absolute path", path)
		}
	}
	return s
}

// readPlacement reads where jobs run on a cluster. The configuration determines which
// options are allowed; an algorithm that uses others is not ready.
func readPlacement(r *tomltree.Reader) placement.Placement {
	t := r.Table(r.Root, "slurm")
	if t == nil {
		return placement.Placement{}
	}
	p := placement.Placement{
		Partition: r.Line(t, "partition"), Account: r.Line(t, "account"), QOS: r.Line(t, "qos"),
		Constraint: r.Line(t, "constraint"), Options: r.Texts(t, "options"),
	}
	if field, msg := p.Check(); field != "" {
		r.Errorf(t.Member(field).Line, "%s: %s", field, msg)
	}
	return p
}
