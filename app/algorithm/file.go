// Package algorithm reads algorithm files and applies them: it checks settings, builds
// commands and reads results. Each file defines one version of one type of job.
package algorithm

import (
	"encoding/json"
	"fmt"
	"time"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/expression"
	"molrun/app/algorithm/folder"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/results"
	"molrun/app/task/protocol"
)

// File is an available algorithm: one algorithm file, which defines one version of one
// type of job. It never changes; a job keeps using the file that it was validated
// against.
type File struct {
	Path               string // source path, for messages
	BuiltIn            bool   // included in molrun
	Type, Version      string
	Default            bool // used when a submission names no version
	Title, Description string
	Install            string // how an administrator installs the program
	Cite, Categories   []string
	Functions          []string
	Keywords           []string // additional search terms
	Executor           string   // any, local, slurm
	Retries            int      // how many lost attempts can be repeated
	Resumable          bool     // a new attempt finds the output of the previous one
	Retry              *Retry   // nil if a job that ran out of memory is not restarted

	// Expected run time until jobs have run. At most one is set; 0 means not given.
	ExpectedSeconds float64 // of a typical job
	SecondsPerSize  float64 // of a job of size 1

	MaxRuntime time.Duration
	Parameters Parameters
	Placement  placement.Placement // on a cluster
	Sandbox    protocol.Sandbox
	Example    *Example // nil if none
	Metrics    results.Metrics
	Failures   results.Failures
	Warnings   results.Warnings
	Views      results.Views
	Outputs    results.Outputs
	Folder     *folder.Folder // its folder; nil if the algorithm is a single file
	Source     []byte         // text of the file, with the list of its folder
	Digest     string         // hex SHA-256 of Source

	Status string // Untested, or ""

	Hidden string // why it can't be used (an invalid file replaces it); otherwise ""

	schema     json.RawMessage   // of the settings
	site       map[string]string // paths of the site, by name
	resources  resources
	runtime    *expression.Expression // seconds; nil means MaxRuntime
	size       *expression.Expression // nil if none
	env        []variable
	conditions []*expression.Expression // every "if"
	steps      []step
	programs   []string           // programs that scripts run, in addition to those of the steps
	shown      []command.Template // files whose tail is logged when a step fails
	checker    *checker           // nil if none
	relations  relations
	texts      textFiles

	whereabouts siteRequirements
	conda       command.Template   // prefix of the conda environment with the programs; nil if none
	versionOf   *versionOf         // nil if the version is not queried
	probe       []command.Argument // self-test; nil means version_command serves as one
}

// Example is a small job that demonstrates the algorithm, with its expected results. A
// file in its settings can be example:NAME, which is included with the algorithm.
type Example struct {
	Settings json.RawMessage
	Files    []string              // expected in the result
	Metrics  map[string][2]float64 // lowest and highest expected value of each
}

// Mistake is an error in an algorithm file.
type Mistake struct {
	File string
	Line int // from 1
	Msg  string
	Type string // type that the file would define, if known
}

func (m Mistake) String() string { return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Msg) }
