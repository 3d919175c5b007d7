package task

import (
	"errors"
	"time"

	"molrun/app/task/protocol"
)

// The defaults of a Spec.
const (
	DefaultLogBytes     = 16 << 20
	DefaultGraceSeconds = 10
)

// Spec is the content of task.json: everything needed to run an attempt.
type Spec struct {
	Protocol          int               `json:"protocol"`
	Token             string            `json:"token"`
	Job               string            `json:"jobId"`
	Attempt           int               `json:"attempt"`
	Program           string            `json:"program,omitempty"`        // path of molrun in steps
	ProgramVersion    string            `json:"programVersion,omitempty"` // version of the algorithm's program, for the outcome
	Steps             []protocol.Step   `json:"steps"`
	Env               map[string]string `json:"env,omitempty"`
	Folder            string            `json:"folder,omitempty"` // of the algorithm, read-only
	Shown             []string          `json:"shown,omitempty"`  // files whose end is logged if a step fails
	GPUs              []string          `json:"gpus,omitempty"`   // leased devices
	Cards             []string          `json:"cards,omitempty"`  // of the GPUs, if any is a MIG instance
	CPUs              int               `json:"cpus"`
	CPUSet            []int             `json:"cpuSet,omitempty"`       // to which its programs are pinned
	MaxRuntimeSeconds int64             `json:"maxRuntimeSeconds"`      // of all steps together; 0 means no limit
	MemoryBytes       int64             `json:"memoryBytes"`            // of all processes together; 0 means no limit
	StorageBytes      int64             `json:"storageBytes,omitempty"` // of all files that it writes; 0 means no limit
	LogBytes          int64             `json:"logBytes"`               // 0 means DefaultLogBytes
	GraceSeconds      int64             `json:"graceSeconds"`           // from TERM to KILL; 0 means DefaultGraceSeconds
}

// WriteSpec writes task.json into an attempt's directory.
func WriteSpec(dir string, s Spec) error { return s.writeWith(dir, writeFile) }

// WriteUnsynced is WriteSpec for a task that does not need to survive a machine crash
// before it starts.
func WriteUnsynced(dir string, s Spec) error { return s.writeWith(dir, writeUnsynced) }

func (s Spec) writeWith(dir string, write func(dir, name string, v any) error) error {
	s.Protocol = Protocol
	if s.Token == "" || len(s.Steps) == 0 {
		return errors.New("write task.json: a task needs a token and a step")
	}
	return write(dir, SpecFile, s)
}

// ReadSpec returns the content of task.json.
func ReadSpec(dir string) (*Spec, error) { return readFile[Spec](dir, SpecFile) }

// Grace returns how long a program has to exit once it is asked to.
func (s *Spec) Grace() time.Duration {
	if s.GraceSeconds <= 0 {
		return DefaultGraceSeconds * time.Second
	}
	return time.Duration(s.GraceSeconds) * time.Second
}

func (s *Spec) logBytes() int64 {
	if s.LogBytes <= 0 {
		return DefaultLogBytes
	}
	return s.LogBytes
}
