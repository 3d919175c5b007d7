// Package protocol has the types that the service and the processes of its tasks exchange
// in files. It has very few imports, because those processes must start fast and every
// imported package is initialized (see package app/task/start).
package protocol

import (
	"strings"
	"syscall"
	"time"
)

// Step is one program to run. Paths are absolute; in Makes and Keep a "*" matches any
// text within a name.
type Step struct {
	Name   string            `json:"name"`
	Argv   []string          `json:"argv"`
	Folder string            `json:"folder,omitempty"` // "" means the work directory
	Stdin  string            `json:"stdin,omitempty"`  // "" means no input
	Stdout string            `json:"stdout,omitempty"` // "" means the log
	Env    map[string]string `json:"env,omitempty"`    // added to the task's

	OK      []int    `json:"ok,omitempty"`      // exit statuses other than 0 that mean success
	FailsIf []string `json:"failsIf,omitempty"` // its output must not contain any of these as whole words
	Makes   []string `json:"makes,omitempty"`   // files that must exist afterwards and not be empty
	Keep    []string `json:"keep,omitempty"`    // files to move to the output directory

	Span  *Span           `json:"span,omitempty"`  // nil means the whole task
	Gauge *ProgressParser `json:"gauge,omitempty"` // nil if the program itself reports progress, or there is none
}

// Span is a step's share of the task's progress.
type Span struct {
	From    float64 `json:"from"`
	Share   float64 `json:"share"`
	Guessed bool    `json:"guessed,omitempty"` // the step's share of the task's time is not declared
}

// ProgressParser describes how to parse the progress of a step from its program's output.
type ProgressParser struct {
	Pattern string  `json:"pattern"`         // regular expression for one line
	Count   bool    `json:"count,omitempty"` // count the matches; otherwise the first group is a number
	Of      float64 `json:"of,omitempty"`    // number at the end; 0 means the second group, or unknown
	File    string  `json:"file,omitempty"`  // searched instead of the program's output
}

// Sandbox says where a program is and what it can access in addition to the system's own
// folders and its work directory. It is enforced on every machine that can create a
// sandbox.
type Sandbox struct {
	Read    []string `json:"read"`
	Network bool     `json:"network"`
	Image   string   `json:"image,omitempty"`   // container image in which the programs run; "" means none
	Modules []string `json:"modules,omitempty"` // environment modules to load first
	Conda   string   `json:"conda,omitempty"`   // prefix of a conda environment; "" means none
	Named   []string `json:"named,omitempty"`   // files named in commands, readable if they exist

	// Required prohibits running the program on a machine that can't create a sandbox.
	Required bool `json:"required,omitempty"`
}

// Image is the container image used by a task.
type Image struct {
	Name string `json:"name"` // as in the algorithm
	ID   string `json:"id"`   // digest of its content, or the ID of a file
}

// Reading is a result of the progress parser.
type Reading struct {
	Fraction float64 // of the step, from 0 to 1; negative means unknown
	Text     string  // such as "1200 of 5000"
}

// Progress is the last progress report of a running program.
type Progress struct {
	Fraction float64 `json:"fraction"` // 0 to 1
	Text     string  `json:"text,omitempty"`
	Basis    string  `json:"basis,omitempty"` // BySteps, or "" for the program's own measure
}

// BySteps is the basis of progress that counts steps of unknown length, from which no
// rate can be derived.
const BySteps = "steps"

// Outcome says how a task ended. It is the content of outcome.json.
type Outcome struct {
	Protocol    int       `json:"protocol"` // 1
	StartedAt   time.Time `json:"startedAt"`
	EndedAt     time.Time `json:"endedAt"`
	Cause       Cause     `json:"cause"`
	Step        string    `json:"step,omitempty"` // the step that failed
	ExitCode    int       `json:"exitCode"`
	Signal      string    `json:"signal,omitempty"` // such as SIGSEGV
	Message     string    `json:"message,omitempty"`
	CPUSeconds  float64   `json:"cpuSeconds"`  // user and system, all processes
	MaxRSSBytes int64     `json:"maxRssBytes"` // highest observed sum, or the largest process

	// OutputFiles and OutputBytes are the size of a completed task's output folder, used
	// to check copies.
	OutputFiles int   `json:"outputFiles,omitempty"`
	OutputBytes int64 `json:"outputBytes,omitempty"`

	// OverMemory is set for a task that succeeded although the kernel killed one of its
	// processes for lack of memory.
	OverMemory bool `json:"overMemory,omitempty"`

	// Isolation names what isolated the programs from the rest of the machine: bubblewrap
	// or a container runtime, cgroup, both (bubblewrap+cgroup) or none.
	Isolation string `json:"isolation,omitempty"`
	Image     *Image `json:"image,omitempty"` // nil if the programs are installed on the machine

	// Unsynced is the boot during which a worker wrote this outcome and the task's output
	// without making them durable. After another boot they might be incomplete, so the
	// outcome is not valid. "" means that they were durable before the outcome appeared.
	Unsynced string `json:"unsynced,omitempty"`

	// Warnings are the programs' warnings that their result is doubtful.
	Warnings []string `json:"warnings,omitempty"`

	// ProgramVersion is the version that the algorithm's program reported before it
	// started; "" if none.
	ProgramVersion string `json:"programVersion,omitempty"`
}

// Cause is the reason why a task ended.
type Cause string

// The causes. Interrupted means that the machine shut down, not that the program failed:
// the attempt counts as lost.
const (
	CauseDone        Cause = "done" // every step succeeded
	CauseExit        Cause = "exit"
	CauseSignal      Cause = "signal"
	CauseTimeout     Cause = "timeout"
	CauseMemory      Cause = "memory"
	CauseLimit       Cause = "limit"   // on processes or file size; Message says which
	CauseDisk        Cause = "disk"    // it wrote more than allowed, or than fits; Message says which
	CauseStopped     Cause = "stopped" // at a user's request
	CauseInterrupted Cause = "interrupted"
	CauseCannotStart Cause = "cannot_start"
	CauseNoResult    Cause = "no_result" // a program exited successfully without having done its work
)

// KilledStatus is the exit status of shells and other programs whose child was killed.
const KilledStatus = 128 + int(syscall.SIGKILL)

// Bubblewrap names the sandbox of programs installed on the machine; images have their
// runtime instead.
const Bubblewrap = "bubblewrap"

// SandboxOf returns the sandbox or container runtime in an Isolation, or "" if there was none.
func SandboxOf(isolation string) string {
	switch box, _, _ := strings.Cut(isolation, "+"); box {
	case "none", "cgroup":
		return ""
	default:
		return box
	}
}
