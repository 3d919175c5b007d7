package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// submitsAtOnce is how many sbatch processes can run at once. Every other command runs
// one process at a time.
const submitsAtOnce = 4

// errNoCommand means that a Slurm command is not installed.
var errNoCommand = errors.New("not found")

// client runs Slurm's commands. They get a clean environment: variables such as
// SBATCH_EXPORT or SQUEUE_FORMAT would change their behavior, and nothing of this process
// must leak into a job.
type client struct {
	options Options
	env     []string
	slots   map[string]chan struct{}
	health  health

	mu       sync.Mutex
	settings siteSettings
}

// Commands are the Slurm commands that a client needs.
var Commands = []string{"sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo"}

// accountManager lists accounts. It is optional.
const accountManager = "sacctmgr"

// newClient returns a client; all fields of o must be set. It runs no command yet.
func newClient(o Options) *client {
	env := []string{
		"PATH=" + o.Path, "LC_ALL=C",
		"SLURM_TIME_FORMAT=%s",
		"SLURM_BITSTR_LEN=0", // print lists of array tasks in full
	}
	if o.SlurmConf != "" {
		env = append(env, "SLURM_CONF="+o.SlurmConf)
	}
	c := &client{options: o, env: env, slots: map[string]chan struct{}{}}
	for _, name := range append([]string{accountManager}, Commands...) {
		atOnce := 1
		if name == "sbatch" {
			atOnce = submitsAtOnce
		}
		c.slots[name] = make(chan struct{}, atOnce)
	}
	return c
}

// commandFailure is the failure of a command.
type commandFailure struct {
	Command string
	Said    string // its stderr
	Exited  bool   // it exited on its own
	Err     error
}

func (f *commandFailure) Error() string {
	if said := lastLine(f.Said); said != "" {
		return f.Command + ": " + said
	}
	return f.Command + ": " + f.Err.Error()
}

func (f *commandFailure) Unwrap() error { return f.Err }

// lastLine returns the last line of a command's output, without the command's name.
func lastLine(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	line := lines[len(lines)-1]
	if _, rest, ok := strings.Cut(line, "error: "); ok {
		line = rest
	}
	return strings.ToValidUTF8(strings.TrimSpace(line), "")
}

// runCommand runs a command to completion once a slot is free, and returns its output.
func (c *client) runCommand(ctx context.Context, stdin, name string, args ...string) (string, error) {
	out, err := c.runInSlot(ctx, stdin, name, args)
	if (name == "squeue" || name == "sinfo") && ctx.Err() == nil {
		c.health.recordResult(name, err, c.options.Now())
	}
	return out, err
}

func (c *client) runInSlot(ctx context.Context, stdin, name string, args []string) (string, error) {
	slot := c.slots[name]
	select {
	case slot <- struct{}{}:
	case <-ctx.Done():
		return "", fmt.Errorf("%s: %w", name, ctx.Err())
	}
	defer func() { <-slot }()
	begin := time.Now()
	out, err := c.execute(ctx, stdin, name, args)
	if c.options.Ran != nil && !errors.Is(err, context.Canceled) { // canceled by us
		c.options.Ran(name, time.Since(begin), err)
	}
	return out, err
}

func (c *client) execute(ctx context.Context, stdin, name string, args []string) (string, error) {
	file, err := c.commandPath(name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, file, args...)
	var out, said bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.env, "/", strings.NewReader(stdin), &out, &said
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		exited := errors.As(err, &exit) && exit.Exited() && ctx.Err() == nil
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer within %v: %w", c.options.Timeout, ctx.Err())
		}
		return "", &commandFailure{Command: name, Said: said.String(), Exited: exited, Err: err}
	}
	return out.String(), nil
}

// commandPath returns the path of a command. It ignores the PATH of this process.
func (c *client) commandPath(name string) (string, error) {
	for _, dir := range filepath.SplitList(c.options.Path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 && filepath.IsAbs(file) {
			return file, nil
		}
	}
	return "", &commandFailure{Command: name, Err: fmt.Errorf("%w in %s", errNoCommand, c.options.Path)}
}
