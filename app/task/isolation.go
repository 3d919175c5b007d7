package task

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	"molrun/app/protocol"
)

// Isolation says how the programs of a task are kept from the rest of the
// machine. Whoever starts the task decides it; nothing of it is optional then:
// a task that can't be isolated so does not start.
type Isolation struct {
	// Find says that the task finds out by itself whether it can have a sandbox,
	// since it runs on another machine: FindAuto takes one where there can be
	// one, FindRequired does not start without. Anything else leaves it to
	// Bubblewrap.
	Find string `json:"find,omitempty"`
	// Bubblewrap is the path of bwrap; "": programs see the whole machine.
	Bubblewrap string `json:"bubblewrap,omitempty"`
	// Sized says that this bwrap can bound the size of shared memory.
	Sized bool `json:"sized,omitempty"`
	// Cgroup is the cgroup in which the task makes its own; "": none.
	Cgroup string `json:"cgroup,omitempty"`
	// Processes is how many processes and threads may be there at once; 0 is
	// no limit.
	Processes int64 `json:"processes,omitempty"`
	// FileBytes is how large a file may become; 0 is no limit.
	FileBytes int64 `json:"fileBytes,omitempty"`
	// Sandbox is what the algorithm asks for.
	Sandbox protocol.Sandbox `json:"sandbox"`
}

// The wishes for a sandbox that a task finds by itself.
const (
	FindAuto     = "auto"
	FindRequired = "required"
)

// found looks for the sandbox that this machine can give, if that is asked for.
func (i Isolation) found(ctx context.Context) (Isolation, error) {
	if i.Find != FindAuto && i.Find != FindRequired {
		return i, nil
	}
	bwrap, err := exec.LookPath("bwrap")
	if err == nil {
		i.Sized, err = TryBubblewrap(ctx, bwrap, "/proc/self/exe")
	}
	switch {
	case err == nil:
		i.Bubblewrap = bwrap
	case i.Find == FindRequired:
		return i, fmt.Errorf("the node can give no sandbox, and runner.sandbox is %q: %w", FindRequired, err)
	}
	return i, nil
}

// ParseIsolation reads what String gave; "" is none.
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

// String gives the form for a command line.
func (i Isolation) String() string {
	text, err := json.Marshal(i)
	if err != nil {
		panic(err) // it has nothing that JSON lacks
	}
	return string(text)
}

// Kind names what holds programs, for run.json and outcome.json: bubblewrap,
// cgroup, both with a + between, or none.
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
