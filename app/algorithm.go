package app

import (
	"context"
	"encoding/json"
	"io/fs"
	"time"
)

// Algorithm is a simulation on offer: one algorithm file (one type, one version).
type Algorithm struct {
	Type, Version      string
	Default            bool
	Title, Description string
	Cite, Categories   []string
	Functions          []string
	Executor           string // any, local, slurm
	Retries            int
	Resumable          bool
	MaxRuntime         time.Duration
	Parameters         []Parameter
	Source             []byte // the text of the file
	Digest             string // hex SHA-256 of Source
	// ... the rest is unexported
}

// Parameter is one setting that an algorithm declares.
type Parameter struct {
	Name, Title, Unit, Help string
	Required, Advanced      bool
	File                    []string        // extensions; non-empty makes the setting a reference to a file
	Default                 json.RawMessage // nil: none
	Schema                  json.RawMessage // JSON Schema of the value
}

// Mistake is one fault of an algorithm file.
type Mistake struct {
	File string
	Line int // from 1
	Msg  string
}

// Machine is what readiness is judged by.
type Machine struct {
	CPUs        int
	MemoryBytes int64
	GPUs        int
	Local       bool // programs run here, so they can be looked for
}

// Paths are what placeholders of a run stand for (absolute).
type Paths struct {
	Work         string            // {work}
	Out          string            // {out}
	SettingsFile string            // {settings_file}
	Files        map[string]string // {files.NAME}
	Program      string            // {molrun}
}

// Step is one program to run.
type Step struct {
	Name   string   `json:"name"`
	Argv   []string `json:"argv"`
	Stdout string   `json:"stdout,omitempty"` // absolute path; "" is the log
}

func ParseAlgorithm(file string, text []byte) (*Algorithm, []Mistake) { panic("pending") }

// CheckSettings returns the normalised settings (constant defaults filled in, members sorted) and every fault; Loc is below the settings.
func (a *Algorithm) CheckSettings(v *Value) (json.RawMessage, []FieldError) { panic("pending") }

// Needs gives the resources of a job with these normalised settings; a fault names the setting.
func (a *Algorithm) Needs(normalized json.RawMessage) (Resources, []FieldError) { panic("pending") }

// Missing says what this machine lacks to run the algorithm; empty: ready.
func (a *Algorithm) Missing(m Machine) []string { panic("pending") }

// HasValidator tells whether there is a [validate]; RunValidator runs it (5 s at most) over several settings.
func (a *Algorithm) RunValidator(ctx context.Context, rows []ValidatorRow) ([][]FieldError, error) {
	panic("pending")
}

type ValidatorRow struct {
	Normalized json.RawMessage
	Paths      Paths // only Files and Program
}

// Expand gives the steps and the environment of a run.
func (a *Algorithm) Expand(normalized json.RawMessage, needs Resources, p Paths) (steps []Step, env map[string]string, err error) {
	panic("pending")
}

// Explain finds a known message in the end of a log; "" where none fits.
func (a *Algorithm) Explain(logTail []byte) string { panic("pending") }

// Results gives metrics.json and the [metrics] of an output folder as one JSON object; nil where there is none. Problems are told, not fatal.
func (a *Algorithm) Results(out fs.FS) (json.RawMessage, []string) { panic("pending") }

// Catalogue is all algorithms on offer.
type Catalogue struct{}

func NewCatalogue(all []*Algorithm) (*Catalogue, error)          { panic("pending") }
func (c *Catalogue) Find(typ, version string) (*Algorithm, bool) { panic("pending") } // version "": the default { panic("pending") }
func (c *Catalogue) Types() []string { panic("pending") } // sorted { panic("pending") }
func (c *Catalogue) Versions(typ string) []*Algorithm { panic("pending") } // newest last { panic("pending") }

// AlgorithmView is an algorithm as clients see it.
type AlgorithmView struct{}
