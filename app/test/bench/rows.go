package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"molrun/app"
)

// rowCPUs is how many CPUs the service and xargs have.
const rowCPUs = 2

// shortRows is a batch of rows that all run the same short program.
type shortRows struct {
	Rows    int
	Seconds float64 // that the program takes, which is /bin/true if they are 0
	Sandbox bool
	Peer    int // how many starts of xargs are measured before the batch, and after it
}

// program is what a row runs.
func (r shortRows) program() []string {
	if r.Seconds == 0 {
		return []string{"/bin/true"}
	}
	return []string{"/bin/sleep", fmt.Sprint(r.Seconds)}
}

// algorithm says that its rows are short, so that they share processes from the first on.
func (r shortRows) algorithm() string {
	const least = 0.05 // what a row of /bin/true may take on a busy machine
	return fmt.Sprintf(`format = 1
type = "row"
version = "1"
title = "A short program"
max_runtime = "1h"
command = ["%s"]

[[parameters]]
name = "row"
type = "integer"
required = true

[estimate]
expected_seconds = %g

[resources]
memory = "16MiB"
`, strings.Join(r.program(), `", "`), max(r.Seconds, least))
}

// body is the request that submits the batch.
func (r shortRows) body() []byte {
	b := []byte(`{"batchName":"rows","type":"row","settings":[`)
	for n := range r.Rows {
		if n > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"row":%d}`, n)
	}
	return append(b, "]}"...)
}

// limit bounds the wait for the batch: a row may take a second more than its program does.
func (r shortRows) limit() time.Duration {
	return patience + time.Duration(float64(r.Rows)*(r.Seconds+1)/rowCPUs*float64(time.Second))
}

// measureRows measures a batch of short rows on a new service in each round, between two
// measurements of xargs with the same program, and prints a line of JSON for each.
func measureRows(ctx context.Context, o options, r shortRows) error {
	for round := range o.Rounds {
		f := figures{}
		if err := r.measure(ctx, o, f); err != nil {
			return err
		}
		printLine(o.Lines, round+1, "rows", r.Rows, f)
	}
	return nil
}

// measure measures one round.
func (r shortRows) measure(ctx context.Context, o options, f figures) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "molrun-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if f["load.before"], err = load1(); err != nil {
		return err
	}
	o.logf("xargs: %d times %s", r.Peer, strings.Join(r.program(), " "))
	before, err := r.xargs(ctx, dir)
	if err != nil {
		return err
	}
	o.logf("a batch of %d rows", r.Rows)
	if err := r.measureBatch(ctx, o, dir, f); err != nil {
		return err
	}
	o.logf("xargs again")
	after, err := r.xargs(ctx, dir)
	if err != nil {
		return err
	}
	f["xargs.before"], f["xargs.after"] = before.rate(r.Peer), after.rate(r.Peer)
	f["xargs.cpu"] = milliseconds(before.cpu+after.cpu) / float64(2*r.Peer)
	f["ratio"] = 2 * f["rate"] / (f["xargs.before"] + f["xargs.after"])
	f["load.after"], err = load1()
	return err
}

// measureBatch measures the batch on a service of its own.
func (r shortRows) measureBatch(ctx context.Context, o options, dir string, f figures) (err error) {
	s, err := newServer(o.Molrun, filepath.Join(dir, "service"), rowCPUs)
	if err != nil {
		return err
	}
	if r.Sandbox {
		err = s.configure(rowCPUs, "required")
	}
	if err := errors.Join(err, s.addAlgorithm("row", r.algorithm())); err != nil {
		return err
	}
	if _, err := s.start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := r.measureOn(ctx, s, f); err != nil {
		return errors.Join(err, s.cancelRows())
	}
	return nil
}

// cancelRows ends the batch early, so that no row outlives the server.
func (s *server) cancelRows() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(s.call(s.post("/jobs/rows/cancel", nil), nil), awaitChildren(ctx, s.pid()))
}

// measureOn submits the batch and waits for its end, and for that of the processes which
// its rows shared: only then is it known what they have used.
func (r shortRows) measureOn(ctx context.Context, s *server, f figures) error {
	ctx, cancel := context.WithTimeout(ctx, r.limit())
	defer cancel()
	service, tasks, err := clocksOf(s.pid())
	if err != nil {
		return err
	}
	watched := watchMemory(s.pid())
	began := time.Now()
	err = s.call(s.post("/submit-batch", r.body()), nil)
	answered := time.Now()
	if err == nil {
		err = s.awaitRows(ctx, r.Rows)
	}
	took := time.Since(began)
	memory := watched()
	if err := errors.Join(err, awaitChildren(ctx, s.pid())); err != nil {
		return err
	}
	serviceAfter, tasksAfter, err := clocksOf(s.pid())
	f["submission"] = milliseconds(answered.Sub(began))
	f["seconds"], f["rate"] = took.Seconds(), float64(r.Rows)/took.Seconds()
	f["service.cpu"] = milliseconds(serviceAfter-service) / float64(r.Rows)
	f["tasks.cpu"] = milliseconds(tasksAfter-tasks) / float64(r.Rows)
	f.addMemory(memory, answered)
	return err
}

// awaitRows waits for the end of the batch, of which every row has to complete.
func (s *server) awaitRows(ctx context.Context, rows int) error {
	for ctx.Err() == nil {
		var batch struct {
			Status       app.Status
			SubjobCounts app.Counts
		}
		if err := s.call(s.get("/jobs/rows?wait=10s"), &batch); err != nil {
			return err
		}
		switch {
		case !batch.Status.Finished():
		case batch.SubjobCounts.Completed != rows:
			return fmt.Errorf("not all of %d rows completed: %+v", rows, batch.SubjobCounts)
		default:
			return nil
		}
	}
	return fmt.Errorf("wait for the end of the batch: %w", ctx.Err())
}

// afterSubmission is how long the service is still busy with a submission that it has
// answered: rows begin, and its garbage is not yet collected.
const afterSubmission = 30 * time.Second

// addMemory adds the peaks during the submission, shortly after it, and later. A batch that
// ended before has no later one.
func (f figures) addMemory(all []memory, answered time.Time) {
	for _, m := range all {
		phase := "memory.later"
		switch {
		case m.at.Before(answered):
			phase = "memory.submission"
		case m.at.Before(answered.Add(afterSubmission)):
			phase = "memory.after"
		}
		f[phase] = max(f[phase], m.mib)
	}
}

// starts is what xargs needed.
type starts struct {
	took, cpu time.Duration
}

// rate is in programs per second.
func (s starts) rate(n int) float64 { return float64(n) / s.took.Seconds() }

// xargs runs the program of a row as often as it is told, two at a time: what users do
// without a service, with no log, directory or record of each. In a sandbox, the program
// is started by bwrap.
func (r shortRows) xargs(ctx context.Context, dir string) (s starts, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.limit())
	defer cancel()
	argv := r.program()
	if r.Sandbox {
		argv = append(bubblewrap(dir), argv...)
	}
	// Without {} in the command, -I runs it once for each line.
	c := exec.CommandContext(ctx, "xargs", append([]string{"-P", fmt.Sprint(rowCPUs), "-I", "{}"}, argv...)...)
	c.Stdin, c.Dir, c.Env = strings.NewReader(strings.Repeat("row\n", r.Peer)), dir, environment()
	began := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		return s, fmt.Errorf("xargs: %w: %.2000s", err, out)
	}
	return starts{time.Since(began), c.ProcessState.UserTime() + c.ProcessState.SystemTime()}, nil
}

// bubblewrap begins a command in the nearest simple equivalent of the service's sandbox:
// the same namespaces, but with the whole of the machine's /etc, which takes one mount,
// an empty /tmp, and no process in between.
func bubblewrap(work string) []string {
	a := []string{
		"bwrap", "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL", "--unshare-net",
	}
	for _, path := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		if target, err := os.Readlink(path); err == nil {
			a = append(a, "--symlink", target, path)
		} else {
			a = append(a, "--ro-bind-try", path, path)
		}
	}
	return append(
		a, "--ro-bind-try", "/sys/devices/system", "/sys/devices/system", "--ro-bind", "/etc", "/etc", "--proc", "/proc",
		"--dev", "/dev", "--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--dir", "/run", "--dir", "/var", "--symlink", "/tmp", "/var/tmp",
		"--tmpfs", "/tmp", "--bind", work, work, "--remount-ro", "/", "--chdir", work, "--",
	)
}
