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

// Isolation says how the programs of a task are isolated from the rest of the machine.
// The starter of the task sets it. A task that can't be isolated this way does not start.
type Isolation struct {
	// Find makes the task itself detect whether it can have a sandbox, because it runs on
	// another machine: FindAuto uses one if possible, FindRequired does not start without
	// one. If Find is "", Bubblewrap decides.
	Find string `json:"find,omitempty"`
	// Bubblewrap is the path of bwrap. If it is "", programs see the whole machine.
	Bubblewrap string `json:"bubblewrap,omitempty"`
	// Sized means that this bwrap can limit the size of shared memory and disable user
	// namespaces.
	Sized bool `json:"sized,omitempty"`
	// Cgroup is the parent of the task's own cgroup; "" means none.
	Cgroup string `json:"cgroup,omitempty"`
	// Hide lists paths that no program can see: the data directory, the configuration,
	// keys.
	Hide []string `json:"hide,omitempty"`
	// Processes limits how many processes and threads can exist at once; 0 means no
	// limit.
	Processes int64 `json:"processes,omitempty"`
	// FileBytes limits the size of a file; 0 means no limit.
	FileBytes int64 `json:"fileBytes,omitempty"`
	// Reserve is how many bytes of the disk must stay free; 0 means no limit.
	Reserve int64 `json:"reserve,omitempty"`
	// Containers selects and configures the container runtime.
	Containers container.Options `json:"containers,omitzero"`
	// ModulesInit is the script that defines the module command; "" means an installed
	// one.
	ModulesInit string `json:"modulesInit,omitempty"`
	// Sandbox holds the algorithm's requirements. If it names an image, programs run in
	// containers instead of bubblewrap.
	Sandbox protocol.Sandbox `json:"sandbox"`

	Runtime *container.Runtime `json:"-"` // runs the image; set by resolve
}

// The values of Isolation.Find.
const (
	FindAuto     = "auto"
	FindRequired = "required"
)

// resolve finds the runtime of an image, or applies Find. It returns an error if a
// sandbox is required but not available.
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
		err = errors.New("the algorithm requires a sandbox, which this machine does not support")
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
		return i, fmt.Errorf("the node does not support sandboxes, but runner.sandbox is %q: %w", FindRequired, err)
	}
	return i, nil
}

// ParseIsolation parses the output of String; "" means no isolation.
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

// String returns the command-line form.
func (i Isolation) String() string {
	text, err := json.Marshal(i)
	if err != nil {
		panic(err) // unreachable: JSON can represent every field
	}
	return string(text)
}

// Kind names the isolation for run.json and outcome.json: bubblewrap or a container
// runtime, cgroup, a combination such as bubblewrap+cgroup, or none.
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
