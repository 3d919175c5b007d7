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

// rowCPUs is the number of CPUs that the service and xargs may use.
const rowCPUs = 2

// shortRows is a batch of jobs that all run the same short program.
type shortRows struct {
	Rows    int
	Seconds float64 // runtime of the program; 0 runs /bin/true
	Sandbox bool
	Peer    int // number of xargs starts measured before the batch, and again after it
}

// program returns the command of each job.
func (r shortRows) program() []string {
	if r.Seconds == 0 {
		return []string{"/bin/true"}
	}
	return []string{"/bin/sleep", fmt.Sprint(r.Seconds)}
}

// algorithm returns an algorithm file that declares its jobs short, so that they share
// processes from the first job on.
func (r shortRows) algorithm() string {
	const least = 0.05 // runtime allowed for /bin/true on a busy machine, in seconds
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

// body returns the body of the request that submits the batch.
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

// limit returns the longest time to wait for the batch. It allows each job one second
// more than its program takes.
func (r shortRows) limit() time.Duration {
	return patience + time.Duration(float64(r.Rows)*(r.Seconds+1)/rowCPUs*float64(time.Second))
}

// measureRows measures a batch of short jobs on a new service in each round, with xargs
// running the same program before and after it, and prints a line of JSON per round.
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

// measureBatch measures the batch on its own service.
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

// cancelRows cancels the batch, so that none of its jobs outlives the server.
func (s *server) cancelRows() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(s.call(s.post("/jobs/rows/cancel", nil), nil), awaitChildren(ctx, s.pid()))
}

// measureOn submits the batch and waits until it has finished and the processes that its
// jobs share have exited, because their CPU time is known only then.
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

// awaitRows waits for the end of the batch. It returns an error unless every job
// completes.
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
	return fmt.Errorf("wait for the batch to finish: %w", ctx.Err())
}

// afterSubmission is how long the service stays busy after it has responded to a
// submission, because jobs are starting and its garbage is not yet collected.
const afterSubmission = 30 * time.Second

// addMemory adds the peak memory during the submission, shortly after it, and later. A
// batch that ends sooner has no later peak.
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

// starts is the time that xargs took, and its CPU time.
type starts struct {
	took, cpu time.Duration
}

// rate returns programs per second.
func (s starts) rate(n int) float64 { return float64(n) / s.took.Seconds() }

// xargs runs the program of a job Peer times, two at a time, as users do without a
// service: with no log, directory or record for each run. If Sandbox is set, bwrap starts
// the program.
func (r shortRows) xargs(ctx context.Context, dir string) (s starts, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.limit())
	defer cancel()
	argv := r.program()
	if r.Sandbox {
		argv = append(bubblewrap(dir), argv...)
	}
	// -I runs the command once per line, even though it does not contain {}.
	c := exec.CommandContext(ctx, "xargs", append([]string{"-P", fmt.Sprint(rowCPUs), "-I", "{}"}, argv...)...)
	c.Stdin, c.Dir, c.Env = strings.NewReader(strings.Repeat("row\n", r.Peer)), dir, environment()
	began := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		return s, fmt.Errorf("xargs: %w: %.2000s", err, out)
	}
	return starts{time.Since(began), c.ProcessState.UserTime() + c.ProcessState.SystemTime()}, nil
}

// bubblewrap returns the bwrap arguments that start a command in a close equivalent of
// the service's sandbox: the same namespaces, but with the machine's entire /etc, which
// takes one mount, an empty /tmp, and no intermediate process.
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
