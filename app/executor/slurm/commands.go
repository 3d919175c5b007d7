package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Submit has sbatch submit a script and returns the job's number.
func (c *client) Submit(ctx context.Context, script string, args ...string) (id string, err error) {
	out, err := c.runCommand(ctx, script, "sbatch", args...)
	if err != nil {
		return "", err
	}
	id, _, _ = strings.Cut(strings.TrimSpace(out), ";") // the name of the cluster may follow
	if !isNumber(id) {
		return "", fmt.Errorf("sbatch: it printed %.80q, which is no number of a job", out)
	}
	return id, nil
}

// Queue asks squeue for all of this user's jobs whose names begin with prefix.
func (c *client) Queue(ctx context.Context, prefix string) ([]jobRecord, error) {
	out, err := c.runCommand(ctx, "", "squeue", "--noheader", "--states=all", "--array",
		"--user="+strconv.Itoa(os.Getuid()), "-O", queueFormat)
	return parseQueue(out, prefix), err
}

// errNoAccounting says that the cluster has no accounting.
var errNoAccounting = errors.New("the cluster has no accounting")

// Account asks sacct for jobs of these names that were submitted since then.
func (c *client) Account(ctx context.Context, prefix string, since time.Time, names []string) ([]jobRecord, error) {
	hours := int(time.Since(since)/time.Hour) + 24
	out, err := c.runCommand(ctx, "", "sacct", "-X", "-n", "-P",
		"-S", fmt.Sprintf("now-%dhours", hours), "-E", "now+7days", "--name", strings.Join(names, ","), "-o", accountFormat)
	if f, ok := errors.AsType[*commandFailure](err); ok && f.Exited && strings.Contains(f.Said, "accounting storage is disabled") {
		return nil, errNoAccounting
	}
	return parseAccount(out, prefix), err
}

// cancelManner is how a job is cancelled.
type cancelManner int

// The manners, from the weakest to the strongest.
const (
	cancelIfQueued  cancelManner = iota // only a job that is still queued
	cancelTerminate                     // signal the batch script, which ends the program gracefully
	cancelEnd                           // by Slurm; at once for a queued job
)

// Cancel calls scancel for jobs of this user that have this name, and of these only
// for those with the given numbers, if there are any. scancel compares the name with
// that of each job right before it ends it. The name is "" if it must not: scancel
// takes one waiting task of an array for all of them as soon as it compares anything.
//
// It fails for one of many jobs and succeeds for jobs that do not exist, so its
// result says nothing about them.
func (c *client) Cancel(ctx context.Context, how cancelManner, name string, targets []string) error {
	var args []string
	if name != "" {
		args = []string{"--user=" + strconv.Itoa(os.Getuid()), "--name=" + name}
	}
	switch how {
	case cancelIfQueued:
		args = append(args, "--state=PENDING")
	case cancelTerminate:
		args = append(args, "--signal=TERM", "--batch")
	}
	_, err := c.runCommand(ctx, "", "scancel", append(args, targets...)...)
	return err
}

// Ping asks whether the controller is up, and returns its message.
func (c *client) Ping(ctx context.Context) (answer string, err error) {
	return c.runCommand(ctx, "", "scontrol", "ping")
}

// Version returns the version of the commands.
func (c *client) Version(ctx context.Context) (string, error) {
	text, err := c.runCommand(ctx, "", "sbatch", "--version")
	return strings.TrimSpace(text), err
}

// State returns the state, the reason and the node of the only job with this name.
func (c *client) State(ctx context.Context, name string) (state, reason, node string, err error) {
	text, err := c.runCommand(ctx, "", "squeue", "--noheader", "--states=all", "--name="+name, "--format=%T|%r|%N")
	state, rest, _ := strings.Cut(strings.TrimSpace(text), "|")
	reason, node, _ = strings.Cut(rest, "|")
	if err == nil && state == "" {
		err = errors.New("squeue does not show it")
	}
	return state, reason, node, err
}
