package cluster

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

//go:embed slurm-up slurm-down
var scripts embed.FS

// timeout bounds one call of a script: on a busy machine, starting a cluster takes a
// minute.
const timeout = 4 * time.Minute

// Cluster is a running cluster.
type Cluster struct {
	Conf string // path of slurm.conf

	base   string // directory of the scripts, and of the state of a cluster started here
	state  string // directory given to slurm-up and slurm-down
	ports  *ports
	keeper *exec.Cmd // purges the cluster once life is closed
	life   io.Closer
}

// New starts a cluster for one test.
func New(t testing.TB, k Knobs) *Cluster {
	t.Helper()
	skipWithoutSlurm(t)
	c, err := start(k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.logIfFailed(t)
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func start(k Knobs) (c *Cluster, err error) {
	// Not below TMPDIR, whose path can be too long for sockets or inaccessible to the
	// user slurm.
	base, err := os.MkdirTemp("/tmp", "molrun-slurm-")
	if err != nil {
		return nil, err
	}
	c = &Cluster{base: base, state: filepath.Join(base, "state")}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
			c = nil
		}
	}()
	if err := c.unpack(); err != nil {
		return c, err
	}
	if c.ports, err = takePorts(k.Nodes); err != nil {
		return c, err
	}
	env, err := k.environ(base, c.ports.first)
	if err != nil {
		return c, err
	}
	if err := c.startKeeper(); err != nil {
		return c, err
	}
	return c, c.up(env)
}

// unpack writes the scripts into the base directory, which other users can enter.
func (c *Cluster) unpack() error {
	if err := os.Chmod(c.base, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"slurm-up", "slurm-down"} {
		text, err := scripts.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(c.base, name), text, 0o755); err != nil {
			return err
		}
	}
	c.Conf = filepath.Join(c.state, "etc", "slurm.conf")
	return nil
}

// startKeeper starts a process that purges the cluster once this process closes the pipe
// between them, either in close or by exiting. The keeper has its own session, so that a
// signal that kills the tests does not kill it.
func (c *Cluster) startKeeper() error {
	const script = `read -r _; bash "$1/slurm-down" --purge "$1/state" >"$1/down.log" 2>&1 && rm -rf "$1"`
	keeper := exec.Command("bash", "-c", script, "keeper", c.base)
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	life, err := keeper.StdinPipe()
	if err != nil {
		return err
	}
	if err := keeper.Start(); err != nil {
		return err
	}
	c.keeper, c.life = keeper, life
	return nil
}

// close stops the cluster and removes all its files.
func (c *Cluster) close() error {
	if c.ports != nil {
		defer c.ports.guard.Close()
	}
	if c.keeper == nil {
		return os.RemoveAll(c.base)
	}
	timer := time.AfterFunc(timeout, func() { _ = c.keeper.Process.Kill() })
	defer timer.Stop()
	err := c.life.Close()
	if err := errors.Join(err, c.keeper.Wait()); err != nil {
		output, _ := os.ReadFile(filepath.Join(c.base, "down.log"))
		return fmt.Errorf("stop the cluster in %s: %w\n%s", c.state, err, output)
	}
	return nil
}

// up starts the named components, or all of them, unless they are already running.
func (c *Cluster) up(env []string, components ...string) error {
	return c.script(env, append([]string{"slurm-up", c.state}, components...)...)
}

// script runs slurm-up or slurm-down.
func (c *Cluster) script(env []string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	script := exec.CommandContext(ctx, "bash", append([]string{filepath.Join(c.base, args[0])}, args[1:]...)...)
	script.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, env...)
	if output, err := script.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return nil
}
