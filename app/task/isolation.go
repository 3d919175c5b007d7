package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"molrun/app/task/container"
	"molrun/app/task/protocol"
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
	// Sized says that this bwrap can limit the size of shared memory and forbid user namespaces.
	Sized bool `json:"sized,omitempty"`
	// Cgroup is the cgroup in which the task makes its own; "" is none.
	Cgroup string `json:"cgroup,omitempty"`
	// Hide lists what no program may see, wherever it is: the data directory, the configuration, keys.
	Hide []string `json:"hide,omitempty"`
	// Processes is how many processes and threads may exist at once; 0 is no
	// limit.
	Processes int64 `json:"processes,omitempty"`
	// FileBytes is how large a file may become; 0 is no limit.
	FileBytes int64 `json:"fileBytes,omitempty"`
	// Reserve is how many bytes of the disk must stay free; 0 is no limit.
	Reserve int64 `json:"reserve,omitempty"`
	// Containers says how images of containers are run.
	Containers container.Options `json:"containers,omitzero"`
	// ModulesInit is the script that defines the command module; "": one that is installed.
	ModulesInit string `json:"modulesInit,omitempty"`
	// Sandbox is what the algorithm asks for. With an image, programs run in containers of
	// it instead of bubblewrap.
	Sandbox protocol.Sandbox `json:"sandbox"`

	Runtime *container.Runtime `json:"-"` // of the image; resolve finds it
}

// The values of Isolation.Find.
const (
	FindAuto     = "auto"
	FindRequired = "required"
)

// resolve finds the runtime of an image, or does what Find asks for, and refuses to run without
// a sandbox what must have one.
func (i Isolation) resolve(ctx context.Context) (Isolation, error) {
	if i.Sandbox.Image != "" {
		i.Bubblewrap = ""
		runtime, err := i.Containers.FindRuntime(i.Sandbox.Image)
		if err == nil {
			i.Runtime = &runtime
		}
		return i, err
	}
	i, err := i.findIsolation(ctx)
	if err == nil && i.Sandbox.Required && i.Bubblewrap == "" {
		err = errors.New("the algorithm's programs may only run in a sandbox, and this machine gives none")
	}
	return i, err
}

func (i Isolation) findIsolation(ctx context.Context) (Isolation, error) {
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

// Kind names the isolation for run.json and outcome.json: bubblewrap or a runtime of
// containers, cgroup, both such as bubblewrap+cgroup, or none.
func (i Isolation) Kind() string {
	var kinds []string
	if i.Runtime != nil {
		kinds = append(kinds, string(i.Runtime.Kind))
	}
	if i.Bubblewrap != "" {
		kinds = append(kinds, protocol.Bubblewrap)
	}
	if i.Cgroup != "" {
		kinds = append(kinds, "cgroup")
	}
	if len(kinds) == 0 {
		return "none"
	}
	return strings.Join(kinds, "+")
}
