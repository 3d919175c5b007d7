// Package protocol is what the service and the processes of its tasks tell one
// another in files. It imports next to nothing: those processes must start as
// fast as a program can, and packages initialise themselves even where they are
// of no use (package app/task/start).
package protocol

import "time"

// Step is one program to run.
type Step struct {
	Name   string   `json:"name"`
	Argv   []string `json:"argv"`
	Stdout string   `json:"stdout,omitempty"` // absolute path; "" is the log
}

// Sandbox says what a program may reach beyond the system's own folders and its
// work directory. Tasks are held to it wherever they run and the machine can make
// a sandbox.
type Sandbox struct {
	Read    []string `json:"read"`
	Network bool     `json:"network"`
}

// Progress is what a running program last said of itself.
type Progress struct {
	Fraction float64 `json:"fraction"` // 0 to 1
	Text     string  `json:"text,omitempty"`
}

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

	// OutputFiles and OutputBytes are what a task that is done left in its
	// output folder, for who copies it.
	OutputFiles int   `json:"outputFiles,omitempty"`
	OutputBytes int64 `json:"outputBytes,omitempty"`

	// Isolation is what kept the programs from the rest of the machine:
	// bubblewrap, cgroup, bubblewrap+cgroup or none. An older version did not
	// always tell it.
	Isolation string `json:"isolation,omitempty"`
}

// Cause says what ended a task.
type Cause string

// The causes. Interrupted means that the machine went down, not that the
// program failed: the attempt counts as lost.
const (
	CauseDone        Cause = "done" // every step exited 0
	CauseExit        Cause = "exit"
	CauseSignal      Cause = "signal"
	CauseTimeout     Cause = "timeout"
	CauseMemory      Cause = "memory"
	CauseLimit       Cause = "limit"   // of processes or of a file's size; Message says which
	CauseStopped     Cause = "stopped" // as asked
	CauseInterrupted Cause = "interrupted"
	CauseCannotStart Cause = "cannot_start"
)
