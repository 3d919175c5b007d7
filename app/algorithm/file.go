// Package algorithm reads algorithm files and applies them: it checks settings,
// makes commands, reads results. One file is one version of one type.
package algorithm

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"molrun/app/algorithm/schema"
	"molrun/app/placement"
	"molrun/app/protocol"
	"molrun/app/strictjson"
)

// Algorithm is a simulation on offer: one algorithm file, which is one
// version of one type. It never changes; a job keeps to the file that it was
// validated against.
type File struct {
	Path               string // where it was read, for messages
	Type, Version      string
	Default            bool // the version taken when a submission names none
	Title, Description string
	Cite, Categories   []string
	Functions          []string
	Executor           string // any, local, slurm
	Retries            int    // attempts beyond the first, for lost ones only
	Resumable          bool   // a new attempt finds the previous one's output
	MaxRuntime         time.Duration
	Parameters         []Parameter
	Placement          placement.Placement // on a cluster
	Sandbox            protocol.Sandbox
	Example            *Example // nil: none
	Source             []byte   // the text of the file
	Digest             string   // hex SHA-256 of Source

	schema    json.RawMessage // of the settings
	resources resources
	env       []envVariable
	steps     []step
	validator *validator
	metrics   []metric
	failures  []knownFailure
}

// Parameter is one setting that an algorithm declares.
type Parameter struct {
	Name, Title, Unit, Help string
	Required, Advanced      bool
	File                    []string        // extensions; non-empty makes the setting a reference to a file
	Default                 json.RawMessage // nil: none
	Schema                  json.RawMessage // JSON Schema of the value

	compiled *schema.Schema    // nil: it has a mistake
	fallback *strictjson.Value // Default
	argument bool              // the value goes into an argument or a variable
}

// Accepts reports whether a file of this name may be given for the parameter.
func (p *Parameter) Accepts(filename string) bool {
	name := strings.ToLower(path.Base(filename))
	for _, ext := range p.File {
		if len(name) > len(ext) && strings.HasSuffix(name, strings.ToLower(ext)) {
			return true
		}
	}
	return false
}

// Extension gives the declared extension that a file's name ends with.
func (p *Parameter) Extension(filename string) string {
	longest := ""
	for _, ext := range p.File {
		one := Parameter{File: []string{ext}}
		if len(ext) > len(longest) && one.Accepts(filename) {
			longest = ext
		}
	}
	return longest
}

// optional reports whether settings may lack a value for the parameter even
// after defaults are filled in.
func (p *Parameter) optional() bool {
	return !p.Required && p.fallback == nil || p.compiled.TakesNull()
}

// Example is a small job that shows the algorithm at work and what it must
// give. Files in its settings may be example:NAME, one of those that come
// with the algorithms.
type Example struct {
	Settings json.RawMessage
	Files    []string              // that the result holds
	Metrics  map[string][2]float64 // lowest and highest value of each
}

// Mistake is one fault of an algorithm file.
type Mistake struct {
	File string
	Line int // from 1
	Msg  string
}

func (m Mistake) String() string { return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Msg) }

// Paths are what placeholders of a run stand for (absolute).
type Paths struct {
	Work         string            // {work}
	Out          string            // {out}
	SettingsFile string            // {settings_file}
	Files        map[string]string // {files.NAME}
	Program      string            // {molrun}
}

// FileParameters gives the parameters whose value refers to a file.
func (a *File) FileParameters() []Parameter {
	var files []Parameter
	for _, p := range a.Parameters {
		if len(p.File) > 0 {
			files = append(files, p)
		}
	}
	return files
}

// readParameter gives the one of that name, nil where there is none.
func (a *File) parameter(name string) *Parameter {
	for i := range a.Parameters {
		if a.Parameters[i].Name == name {
			return &a.Parameters[i]
		}
	}
	return nil
}

func (a *File) parameterNames() []string {
	names := make([]string, len(a.Parameters))
	for i := range a.Parameters {
		names[i] = a.Parameters[i].Name
	}
	return names
}
