// Package protocol has the types that the service and the processes of its tasks
// exchange in files. It imports next to nothing, because those processes must
// start fast and every imported package is initialised (package app/task/start).
package protocol

import "time"

// Step is one program to run.
type Step struct {
	Name   string   `json:"name"`
	Argv   []string `json:"argv"`
	Stdout string   `json:"stdout,omitempty"` // absolute path; "" is the log
}

// Sandbox says what a program may reach beyond the system's own folders and its
// work directory. It is enforced on every machine that can make a sandbox.
type Sandbox struct {
	Read    []string `json:"read"`
	Network bool     `json:"network"`
}

// Progress is the last progress report of a running program.
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

	// OutputFiles and OutputBytes are the size of a finished task's output folder,
	// to check copies against.
	OutputFiles int   `json:"outputFiles,omitempty"`
	OutputBytes int64 `json:"outputBytes,omitempty"`

	// Isolation is what isolated the programs from the rest of the machine:
	// bubblewrap, cgroup, bubblewrap+cgroup or none. It is empty in outcomes of older
	// versions.
	Isolation string `json:"isolation,omitempty"`
}

// Cause says what ended a task.
type Cause string

// The causes. Interrupted means that the machine shut down, not that the program
// failed: the attempt counts as lost.
const (
	CauseDone        Cause = "done" // every step exited 0
	CauseExit        Cause = "exit"
	CauseSignal      Cause = "signal"
	CauseTimeout     Cause = "timeout"
	CauseMemory      Cause = "memory"
	CauseLimit       Cause = "limit"   // of processes or of a file's size; Message says which
	CauseStopped     Cause = "stopped" // somebody asked for it
	CauseInterrupted Cause = "interrupted"
	CauseCannotStart Cause = "cannot_start"
)
