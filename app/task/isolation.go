package task

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	"molrun/app/protocol"
	"molrun/app/task/sandbox"
)

// Isolation says how the programs of a task are isolated from the rest of the
// machine. The starter of the task decides it. A task that can't be isolated in
// this way does not start.
type Isolation struct {
	// Find makes the task find out by itself whether it can have a sandbox,
	// because it runs on another machine: FindAuto takes one if possible,
	// FindRequired does not start without. Otherwise Bubblewrap decides.
	Find string `json:"find,omitempty"`
	// Bubblewrap is the path of bwrap. If it is "", programs see the whole machine.
	Bubblewrap string `json:"bubblewrap,omitempty"`
	// Sized says that this bwrap can limit the size of shared memory.
	Sized bool `json:"sized,omitempty"`
	// Cgroup is the cgroup in which the task makes its own; "" is none.
	Cgroup string `json:"cgroup,omitempty"`
	// Processes is how many processes and threads may exist at once; 0 is no
	// limit.
	Processes int64 `json:"processes,omitempty"`
	// FileBytes is how large a file may become; 0 is no limit.
	FileBytes int64 `json:"fileBytes,omitempty"`
	// Sandbox is what the algorithm asks for.
	Sandbox protocol.Sandbox `json:"sandbox"`
}

// The values of Isolation.Find.
const (
	FindAuto     = "auto"
	FindRequired = "required"
)

// resolve does what Find asks for.
func (i Isolation) resolve(ctx context.Context) (Isolation, error) {
	if i.Find != FindAuto && i.Find != FindRequired {
		return i, nil
	}
	bwrap, err := exec.LookPath("bwrap")
	if err == nil {
		i.Sized, err = sandbox.Probe(ctx, bwrap)
	}
	switch {
	case err == nil:
		i.Bubblewrap = bwrap
	case i.Find == FindRequired:
		return i, fmt.Errorf("the node can give no sandbox, and runner.sandbox is %q: %w", FindRequired, err)
	}
	return i, nil
}

// ParseIsolation reads the form that String gives; "" is no isolation.
func ParseIsolation(text string) (Isolation, error) {
	var i Isolation
	if text == "" {
		return i, nil
	}
	if err := json.Unmarshal([]byte(text), &i); err != nil {
		return i, fmt.Errorf("read the isolation %q: %w", text, err)
	}
	return i, nil
}

// String returns the form for a command line.
func (i Isolation) String() string {
	text, err := json.Marshal(i)
	if err != nil {
		panic(err) // never: JSON can represent every field
	}
	return string(text)
}

// Kind names the isolation for run.json and outcome.json: bubblewrap, cgroup,
// bubblewrap+cgroup or none.
func (i Isolation) Kind() string {
	var kinds []string
	if i.Bubblewrap != "" {
		kinds = append(kinds, "bubblewrap")
	}
	if i.Cgroup != "" {
		kinds = append(kinds, "cgroup")
	}
	if len(kinds) == 0 {
		return "none"
	}
	return strings.Join(kinds, "+")
}
