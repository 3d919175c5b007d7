// Package algorithm reads algorithm files and applies them: it checks settings,
// makes commands, reads results. One file is one version of one type.
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

// File is an algorithm on offer: one algorithm file, which is one version of one
// type. It never changes; a job keeps to the file it was validated against.
type File struct {
	Path               string // where it was read, for messages
	BuiltIn            bool   // it comes with molrun
	Type, Version      string
	Default            bool // the version taken when a submission names none
	Title, Description string
	Install            string // how an administrator installs the program
	Cite, Categories   []string
	Functions          []string
	Keywords           []string // other words by which people search
	Executor           string   // any, local, slurm
	Retries            int      // further attempts, after lost ones only
	Resumable          bool     // a new attempt finds the previous one's output
	Retry              *Retry   // nil: a job that ran out of memory is not started again

	// How long jobs run until some have, one of the two; 0: not said.
	ExpectedSeconds float64 // a usual job
	SecondsPerSize  float64 // a job of size 1

	MaxRuntime time.Duration
	Parameters Parameters
	Placement  placement.Placement // on a cluster
	Sandbox    protocol.Sandbox
	Example    *Example // nil: none
	Metrics    results.Metrics
	Failures   results.Failures
	Warnings   results.Warnings
	Views      results.Views
	Outputs    results.Outputs
	Folder     *folder.Folder // what comes with it; nil: it is a file alone
	Source     []byte         // the text of the file, with the list of its folder
	Digest     string         // hex SHA-256 of Source

	Status string // Untested, or ""

	Hidden string // why it can't be used: an invalid file takes its place; "" if none does

	schema     json.RawMessage   // of the settings
	site       map[string]string // where the site has things, by name
	resources  resources
	runtime    *expression.Expression // seconds; nil: MaxRuntime
	size       *expression.Expression // nil: none
	env        []variable
	conditions []*expression.Expression // every "if"
	steps      []step
	programs   []string           // that scripts run, beside those of the steps
	shown      []command.Template // files whose end goes to the log of a step that fails
	checker    *checker           // nil: none
	relations  relations
	texts      textFiles

	whereabouts whereabouts
	conda       command.Template   // prefix of the environment that has the programs; nil: none
	versionOf   *versionOf         // nil: the program is not asked
	probe       []command.Argument // shows that the program works; nil: version_command does
}

// Example is a small job that shows the algorithm at work, with its expected
// results. A file in its settings may be example:NAME, which comes with the
// algorithm.
type Example struct {
	Settings json.RawMessage
	Files    []string              // expected in the result
	Metrics  map[string][2]float64 // lowest and highest value of each
}

// Mistake is something wrong in an algorithm file.
type Mistake struct {
	File string
	Line int // from 1
	Msg  string
	Type string // which the file would define, as far as it is known
}

func (m Mistake) String() string { return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Msg) }
