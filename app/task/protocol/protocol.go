// Package protocol has the types that the service and the processes of its tasks
// exchange in files. It imports next to nothing, because those processes must
// start fast and every imported package is initialised (package app/task/start).
package protocol

import (
	"strings"
	"syscall"
	"time"
)

// Step is one program to run. Paths are absolute; in Makes and Keep a "*" stands for any text
// within a name.
type Step struct {
	Name   string            `json:"name"`
	Argv   []string          `json:"argv"`
	Folder string            `json:"folder,omitempty"` // "" is the work directory
	Stdin  string            `json:"stdin,omitempty"`  // "" is nothing
	Stdout string            `json:"stdout,omitempty"` // "" is the log
	Env    map[string]string `json:"env,omitempty"`    // beside the task's

	OK      []int    `json:"ok,omitempty"`      // exit statuses that are no failure, beside 0
	FailsIf []string `json:"failsIf,omitempty"` // what it prints must not have one of these, as whole words
	Makes   []string `json:"makes,omitempty"`   // files that must be there then, and not be empty
	Keep    []string `json:"keep,omitempty"`    // files that are moved to the output directory

	Span  *Span  `json:"span,omitempty"`  // nil: the whole, of which its program knows more
	Gauge *Gauge `json:"gauge,omitempty"` // nil: its program reports progress itself, or nothing does
}

// Span is the part that a step has of the task's progress.
type Span struct {
	From    float64 `json:"from"`
	Share   float64 `json:"share"`
	Guessed bool    `json:"guessed,omitempty"` // the share of the step in the task's time is not declared
}

// Gauge says how to see how far a step is by what its program prints.
type Gauge struct {
	Pattern string  `json:"pattern"`         // a regular expression for one line
	Count   bool    `json:"count,omitempty"` // its matches are counted; else its first group is a number
	Of      float64 `json:"of,omitempty"`    // which number is the end; 0: its second group, or unknown
	File    string  `json:"file,omitempty"`  // that is searched instead of the program's output
}

// Sandbox says where a program is and what it may reach beyond the system's own folders and
// its work directory. It is enforced on every machine that can make a sandbox.
type Sandbox struct {
	Read    []string `json:"read"`
	Network bool     `json:"network"`
	Image   string   `json:"image,omitempty"`   // of the container in which its programs run; "": none
	Modules []string `json:"modules,omitempty"` // environment modules that are loaded before
	Conda   string   `json:"conda,omitempty"`   // prefix of an environment; "": none
	Named   []string `json:"named,omitempty"`   // by commands: files that may be read where there are any

	// Required forbids to run the program on a machine that can make no sandbox.
	Required bool `json:"required,omitempty"`
}

// Image is the container image that a task has used.
type Image struct {
	Name string `json:"name"` // as the algorithm names it
	ID   string `json:"id"`   // digest of its content, or the ID of a file
}

// Reading is what a gauge says.
type Reading struct {
	Fraction float64 // 0 to 1, of the step; below 0: unknown
	Text     string  // such as "1200 of 5000"
}

// Progress is the last progress report of a running program.
type Progress struct {
	Fraction float64 `json:"fraction"` // 0 to 1
	Text     string  `json:"text,omitempty"`
	Basis    string  `json:"basis,omitempty"` // BySteps, or "": the program's own measure
}

// BySteps is the basis of progress that counts steps of unknown lengths: no rate follows
// from it.
const BySteps = "steps"

// Outcome says how a task ended. It is the content of outcome.json.
type Outcome struct {
	Protocol    int       `json:"protocol"` // 1
	StartedAt   time.Time `json:"startedAt"`
	EndedAt     time.Time `json:"endedAt"`
	Cause       Cause     `json:"cause"`
	Step        string    `json:"step,omitempty"` // the one that failed
	ExitCode    int       `json:"exitCode"`
	Signal      string    `json:"signal,omitempty"` // such as SIGSEGV
	Message     string    `json:"message,omitempty"`
	CPUSeconds  float64   `json:"cpuSeconds"`  // user and system, all processes
	MaxRSSBytes int64     `json:"maxRssBytes"` // highest sum seen, or of the largest process

	// OutputFiles and OutputBytes are the size of a finished task's output folder,
	// to check copies against.
	OutputFiles int   `json:"outputFiles,omitempty"`
	OutputBytes int64 `json:"outputBytes,omitempty"`

	// OverMemory is set for a task that succeeded although the kernel killed a process of it for
	// want of memory.
	OverMemory bool `json:"overMemory,omitempty"`

	// Isolation is what isolated the programs from the rest of the machine:
	// bubblewrap or a runtime of containers, cgroup, both (bubblewrap+cgroup) or none.
	Isolation string `json:"isolation,omitempty"`
	Image     *Image `json:"image,omitempty"` // nil: its programs are the machine's

	// Unsynced is the boot during which a pilot wrote this outcome and the task's output
	// without making them durable. After another boot they may be incomplete, so the
	// outcome says nothing then. "": they were durable before the outcome appeared.
	Unsynced string `json:"unsynced,omitempty"`

	// Warnings are what the programs say makes their result doubtful.
	Warnings []string `json:"warnings,omitempty"`

	// ProgramVersion is what the algorithm's program said before it started; "": nothing.
	ProgramVersion string `json:"programVersion,omitempty"`
}

// Cause says what ended a task.
type Cause string

// The causes. Interrupted means that the machine shut down, not that the program
// failed: the attempt counts as lost.
const (
	CauseDone        Cause = "done" // every step ended well
	CauseExit        Cause = "exit"
	CauseSignal      Cause = "signal"
	CauseTimeout     Cause = "timeout"
	CauseMemory      Cause = "memory"
	CauseLimit       Cause = "limit"   // of processes or of a file's size; Message says which
	CauseDisk        Cause = "disk"    // it wrote more than it may, or than fits; Message says which
	CauseStopped     Cause = "stopped" // at a user's request
	CauseInterrupted Cause = "interrupted"
	CauseCannotStart Cause = "cannot_start"
	CauseNoResult    Cause = "no_result" // a program ended well without having done its work
)

// KilledStatus is how shells and other programs end whose child was killed.
const KilledStatus = 128 + int(syscall.SIGKILL)

// Bubblewrap is the sandbox of programs of the machine; those of images have their runtime.
const Bubblewrap = "bubblewrap"

// Box returns the sandbox or runtime of containers in an Isolation, "" if there was none.
func Box(isolation string) string {
	switch box, _, _ := strings.Cut(isolation, "+"); box {
	case "none", "cgroup":
		return ""
	default:
		return box
	}
}
