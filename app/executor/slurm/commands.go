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

// Submit submits a script with sbatch and returns the job ID.
func (c *client) Submit(ctx context.Context, script string, args ...string) (id string, err error) {
	out, err := c.runCommand(ctx, script, "sbatch", args...)
	if err != nil {
		return "", err
	}
	id, _, _ = strings.Cut(strings.TrimSpace(out), ";") // the cluster's name may follow
	if !isNumber(id) {
		return "", fmt.Errorf("sbatch: printed %.80q, which is not a job ID", out)
	}
	return id, nil
}

// Queue lists with squeue all of this user's jobs whose names begin with prefix.
func (c *client) Queue(ctx context.Context, prefix string) ([]jobRecord, error) {
	out, err := c.runCommand(ctx, "", "squeue", "--noheader", "--states=all", "--array",
		"--user="+strconv.Itoa(os.Getuid()), "-O", queueFormat)
	return parseQueue(out, prefix), err
}

// errNoAccounting means that the cluster has no accounting.
var errNoAccounting = errors.New("the cluster has no accounting")

// Account uses sacct to list the jobs with one of these names, including at least those
// submitted after since.
func (c *client) Account(ctx context.Context, prefix string, since time.Time, names []string) ([]jobRecord, error) {
	hours := int(time.Since(since)/time.Hour) + 24
	out, err := c.runCommand(ctx, "", "sacct", "-X", "-n", "-P",
		"-S", fmt.Sprintf("now-%dhours", hours), "-E", "now+7days", "--name", strings.Join(names, ","), "-o", accountFormat)
	if f, ok := errors.AsType[*commandFailure](err); ok && f.Exited && strings.Contains(f.Said, "accounting storage is disabled") {
		return nil, errNoAccounting
	}
	return parseAccount(out, prefix), err
}

// cancelManner is how a job is canceled.
type cancelManner int

// The manners, from weakest to strongest.
const (
	cancelIfQueued  cancelManner = iota // only if the job is still queued
	cancelTerminate                     // signal the batch script, which ends the program gracefully
	cancelEnd                           // end by Slurm; immediate for a queued job
)

// Cancel calls scancel for this user's jobs with this name and, if targets is not empty,
// only for those with these IDs. scancel compares each job's name right before it cancels
// the job. name must be "" to cancel single waiting tasks of an array: as soon as scancel
// compares anything, it treats one waiting task of an array as all of them.
//
// scancel fails if one of many jobs fails, and succeeds for jobs that do not exist, so
// its result says nothing about single jobs.
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

// Ping checks with scontrol whether the controller is up, and returns the output.
func (c *client) Ping(ctx context.Context) (answer string, err error) {
	return c.runCommand(ctx, "", "scontrol", "ping")
}

// Version returns the version of Slurm's commands.
func (c *client) Version(ctx context.Context) (string, error) {
	text, err := c.runCommand(ctx, "", "sbatch", "--version")
	return strings.TrimSpace(text), err
}

// State returns the state, reason and node of the only job with this name.
func (c *client) State(ctx context.Context, name string) (state, reason, node string, err error) {
	text, err := c.runCommand(ctx, "", "squeue", "--noheader", "--states=all", "--name="+name, "--format=%T|%r|%N")
	state, rest, _ := strings.Cut(strings.TrimSpace(text), "|")
	reason, node, _ = strings.Cut(rest, "|")
	if err == nil && state == "" {
		err = errors.New("squeue does not list it")
	}
	return state, reason, node, err
}
