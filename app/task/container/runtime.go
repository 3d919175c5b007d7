// Package container runs the programs of tasks in containers, using the command line of
// Podman, Docker or Apptainer. The command lines are pure functions of a Box; the rest
// queries the runtimes for images and leftover containers.
package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
)

// Options selects and configures the container runtime. A task receives it when it is
// started.
type Options struct {
	Runtime string   `json:"runtime,omitempty"` // a Kind, Auto or Off; "" means Auto
	Pull    string   `json:"pull,omitempty"`    // PullMissing or PullNever; "" means PullNever
	Env     []string `json:"env,omitempty"`     // variables for the runtime's command, NAME=VALUE
}

// The values of Options.
const (
	Auto        = "auto" // the first installed runtime that supports the image
	Off         = "off"
	PullNever   = "never"
	PullMissing = "missing"
)

// Runtime is an installed container runtime.
type Runtime struct {
	Kind Kind     `json:"kind"`
	Path string   `json:"path"`
	Env  []string `json:"env,omitempty"` // added to what every task inherits
}

// Any reports whether a container runtime is installed and enabled.
func (o Options) Any() bool {
	return o.Runtime != Off && slices.ContainsFunc([]Kind{Podman, Docker, Apptainer}, func(kind Kind) bool {
		_, err := exec.LookPath(string(kind))
		return err == nil
	})
}

// FindRuntime returns the runtime to use for the image, without starting it.
func (o Options) FindRuntime(image string) (Runtime, error) {
	if o.Runtime == Off {
		return Runtime{}, errors.New(`its program is in a container image, but containers.runtime is "off" here`)
	}
	kinds := []Kind{Podman, Docker}
	if IsFile(image) || o.Runtime == string(Apptainer) {
		kinds = []Kind{Apptainer}
	}
	if o.Runtime != "" && o.Runtime != Auto {
		if !slices.Contains(kinds, Kind(o.Runtime)) {
			return Runtime{}, fmt.Errorf("the image %s is a file, which only Apptainer can run, but containers.runtime is %q here", image, o.Runtime)
		}
		kinds = []Kind{Kind(o.Runtime)}
	}
	for _, kind := range kinds {
		if path, err := exec.LookPath(string(kind)); err == nil {
			return Runtime{Kind: kind, Path: path, Env: o.environment()}, nil
		}
	}
	return Runtime{}, fmt.Errorf("its program is in a container image, but %s was not found in PATH", namesOf(kinds))
}

func namesOf(kinds []Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, " or ")
}

// environment returns what runtimes need in addition to the search path. Podman keeps its
// state in the folder that a login session creates, if it exists.
func (o Options) environment() []string {
	var env []string
	if dir := fmt.Sprintf("/run/user/%d", os.Getuid()); isFolder(dir) {
		env = append(env, "XDG_RUNTIME_DIR="+dir)
	}
	return append(env, o.Env...)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// askTimeout limits queries about images and containers, which are normally quick.
const askTimeout = time.Minute

// runCommand runs the runtime and returns its output.
func (r Runtime) runCommand(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, r.Path, args...)
	var out, problem process.Output
	c.Env = r.Environment()
	c.Stdout, c.Stderr, c.Dir, c.WaitDelay = &out, &problem, "/", time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w", r.Kind, args[0], cause(ctx, err, problem.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

func cause(ctx context.Context, err error, said string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if line := Reason(said); line != "" {
		return errors.New(line)
	}
	return err
}

// Reason returns the most informative line of a runtime's error output, fit for use in a
// sentence.
func Reason(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for _, line := range slices.Backward(lines) {
		if rest, found := strings.CutPrefix(line, "Error: "); found {
			return protocol.CleanText(rest)
		}
	}
	return protocol.CleanText(lines[len(lines)-1])
}

// Environment returns the complete environment of the runtime's command.
func (r Runtime) Environment() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG"} {
		if value, found := os.LookupEnv(name); found {
			env = append(env, name+"="+value)
		}
	}
	return append(env, r.Env...)
}

// Image returns the ID of a local image: the digest of its content or, for a file, the ID
// stored in it.
func (r Runtime) Image(ctx context.Context, image string) (id string, err error) {
	if r.Kind == Apptainer {
		return fileID(image)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	id, err = r.runCommand(ctx, r.Kind.inspect(image)...)
	switch {
	case ctx.Err() != nil:
		return "", err
	case err != nil && isAbsent(err.Error()):
		return "", fmt.Errorf("the image %s does not exist on this machine; load it with: %s load -i FILE", r.Kind.Reference(image), r.Kind)
	case err != nil:
		return "", fmt.Errorf("cannot inspect the image %s: %w", r.Kind.Reference(image), err)
	}
	return "sha256:" + strings.TrimPrefix(id, "sha256:"), nil
}

// isAbsent reports whether Podman or Docker said that the image does not exist locally.
func isAbsent(said string) bool {
	said = strings.ToLower(said)
	return strings.Contains(said, "no such image") || strings.Contains(said, "image not known") || strings.Contains(said, "failed to find image")
}

// Pull fetches a missing image.
func (r Runtime) Pull(ctx context.Context, image string) error {
	if _, err := r.runCommand(ctx, r.Kind.pull(image)...); err != nil {
		return fmt.Errorf("cannot pull the image %s: %w", r.Kind.Reference(image), err)
	}
	return nil
}

// Remove kills and removes a container. It is no error if there is none.
func (r Runtime) Remove(ctx context.Context, name string) error {
	if r.Kind == Apptainer || name == "" {
		return nil // there is nothing but processes to clean up
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, err := r.runCommand(ctx, r.Kind.remove(name)...)
	if err != nil && !isGone(err) { // the container might have exited just then
		_, err = r.runCommand(ctx, r.Kind.remove(name)...)
	}
	if isGone(err) {
		return nil
	}
	return err
}

func isGone(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "no such container")
}

// CleanUp removes the containers of finished tasks whose directories are inside the
// folder below. over reports whether the attempt in dir has finished.
func (r Runtime) CleanUp(ctx context.Context, below string, over func(dir string) bool) error {
	if r.Kind == Apptainer {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	listed, err := r.runCommand(ctx, r.Kind.listArguments()...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(listed) {
		name, dir, found := strings.Cut(strings.TrimSpace(line), " ")
		if found && strings.HasPrefix(dir, filepath.Clean(below)+"/") && over(dir) {
			err = errors.Join(err, r.Remove(ctx, name))
		}
	}
	return err
}
