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
	"time"
)

// submitsAtOnce is how many sbatch may run at once. Of each other command there
// is one.
const submitsAtOnce = 4

var errNoCommand = errors.New("not found")

// commands runs the commands of Slurm. They get an environment of their own:
// variables such as SBATCH_EXPORT or SQUEUE_FORMAT would change what they do,
// and nothing of this process is to reach a job.
type commands struct {
	path    string
	env     []string
	timeout time.Duration
	turns   map[string]chan struct{}
	now     func() time.Time
	health  health // of the controller
}

func newCommands(o Options) *commands {
	env := []string{
		"PATH=" + o.Path, "LC_ALL=C",
		"SLURM_TIME_FORMAT=%s",
		"SLURM_BITSTR_LEN=0", // lists of array tasks are given whole
	}
	if o.SlurmConf != "" {
		env = append(env, "SLURM_CONF="+o.SlurmConf)
	}
	c := &commands{path: o.Path, env: env, timeout: o.Timeout, now: o.Now, turns: map[string]chan struct{}{}}
	for name, atOnce := range map[string]int{"sbatch": submitsAtOnce, "squeue": 1, "sacct": 1, "scancel": 1, "scontrol": 1, "sinfo": 1} {
		c.turns[name] = make(chan struct{}, atOnce)
	}
	return c
}

// failed says that a command did not succeed.
type failed struct {
	command string
	said    string // on stderr
	exit    bool   // it ended by itself
	err     error
}

func (f *failed) Error() string {
	if said := lastLine(f.said); said != "" {
		return f.command + ": " + said
	}
	return f.command + ": " + f.err.Error()
}

func (f *failed) Unwrap() error { return f.err }

// lastLine gives the last thing that a command said, without its name.
func lastLine(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	line := lines[len(lines)-1]
	if _, rest, ok := strings.Cut(line, "error: "); ok {
		line = rest
	}
	return strings.ToValidUTF8(strings.TrimSpace(line), "")
}

// run runs a command to its end, in its turn, and gives what it prints.
func (c *commands) run(ctx context.Context, stdin, name string, args ...string) (string, error) {
	out, err := c.inTurn(ctx, stdin, name, args)
	if (name == "squeue" || name == "sinfo") && ctx.Err() == nil {
		c.health.note(err, c.now())
	}
	return out, err
}

func (c *commands) inTurn(ctx context.Context, stdin, name string, args []string) (string, error) {
	turn := c.turns[name]
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return "", fmt.Errorf("%s: %w", name, ctx.Err())
	}
	defer func() { <-turn }()
	file, err := c.find(name)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, file, args...)
	var out, said bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.env, "/", strings.NewReader(stdin), &out, &said
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		ended := errors.As(err, &exit) && exit.Exited() && ctx.Err() == nil
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer within %v: %w", c.timeout, ctx.Err())
		}
		return "", &failed{command: name, said: said.String(), exit: ended, err: err}
	}
	return out.String(), nil
}

// find gives the path of a command. What this process has as PATH does not
// matter.
func (c *commands) find(name string) (string, error) {
	for _, dir := range filepath.SplitList(c.path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 && filepath.IsAbs(file) {
			return file, nil
		}
	}
	return "", &failed{command: name, err: fmt.Errorf("%w in %s", errNoCommand, c.path)}
}
