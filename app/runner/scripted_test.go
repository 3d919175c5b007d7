package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/task"
)

// script is the behavior of a task.
type script struct {
	waits      time.Duration // time from Start until its process starts
	why        string        // reason why it waits
	runs       time.Duration
	cause      app.Cause // "" means lost
	exitCode   int
	stopTakes  time.Duration     // time from Stop to its end
	out        map[string]string // output files by name; nil means a file with the attempt number
	log        string
	warnings   []string
	basis      string // basis of its progress
	message    string // message of the outcome
	overMemory bool   // one of its processes was killed for lack of memory
	refuses    error  // error of Start
	on         app.ClusterJob
}

// scripted is the executor of the tests. Its tasks run and end by scripts. It fails the
// test if two tasks of a job are alive at once, if more resources are in use than exist,
// or if a task is started twice.
type scripted struct {
	t        testing.TB
	name     string
	capacity app.Capacity
	bounded  bool
	play     func(app.Task) script

	mu          sync.Mutex
	tasks       map[string]*scriptedTask // by token
	order       []app.JobID              // in the order of their starts
	unreachable bool
	stops       int
}

type scriptedTask struct {
	app.Task
	script
	begin, end time.Time // of the process
	cause      app.Cause
}

func (s *scripted) Name() string                   { return s.name }
func (s *scripted) Capacity() (app.Capacity, bool) { return s.capacity, s.bounded }

func (s *scripted) Start(_ context.Context, t app.Task) (app.Handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.play(t)
	if p.refuses != nil {
		return "", p.refuses
	}
	spec, err := task.ReadSpec(t.Dir)
	if err != nil || spec.Token != t.Token || t.Limit != time.Duration(spec.MaxRuntimeSeconds)*time.Second || s.bounded && len(spec.GPUs) != t.Needs.GPUs {
		s.t.Errorf("task.json of %s/%d: %+v, %v", t.Job, t.Attempt, spec, err)
	}
	if s.tasks[t.Token] != nil {
		s.t.Errorf("task %s/%d is started twice", t.Job, t.Attempt)
	}
	now := time.Now()
	begin := now.Add(p.waits)
	s.tasks[t.Token] = &scriptedTask{Task: t, script: p, begin: begin, end: begin.Add(p.runs), cause: p.cause}
	s.order = append(s.order, t.Job)
	s.check(now)
	return app.Handle("handle of " + t.Token), s.write(t, p)
}

// check checks all live tasks.
func (s *scripted) check(now time.Time) {
	var used placement.Resources
	jobs, devices := map[app.JobID]bool{}, map[string]bool{}
	for _, t := range s.tasks {
		if !now.Before(t.end) {
			continue
		}
		if jobs[t.Job] {
			s.t.Errorf("two tasks of job %s are alive at once", t.Job)
		}
		jobs[t.Job] = true
		if len(slices.Concat(s.capacity.Cores...)) >= s.capacity.CPUs && s.bounded && len(t.Devices.CPUs) != t.Needs.CPUs {
			s.t.Errorf("a task for %d CPUs is pinned to %v", t.Needs.CPUs, t.Devices.CPUs)
		}
		all := slices.Clone(t.Devices.GPUs)
		for _, cpu := range t.Devices.CPUs {
			all = append(all, fmt.Sprint("CPU ", cpu))
		}
		for _, d := range all {
			if devices[d] {
				s.t.Errorf("device %s is used by two tasks", d)
			}
			devices[d] = true
		}
		used.CPUs += t.Needs.CPUs
		used.MemoryBytes += t.Needs.MemoryBytes
		used.GPUs += t.Needs.GPUs
	}
	if s.bounded && (used.CPUs > s.capacity.CPUs || used.MemoryBytes > s.capacity.MemoryBytes || used.GPUs > len(s.capacity.GPUs)) {
		s.t.Errorf("in use: %+v of %+v", used, s.capacity)
	}
}

// write writes the output of the task's program.
func (s *scripted) write(t app.Task, p script) error {
	out := p.out
	if out == nil {
		out = map[string]string{"attempt.txt": fmt.Sprint(t.Attempt)}
	}
	err := errors.Join(
		os.WriteFile(filepath.Join(t.Dir, task.RunFile), []byte(`{"protocol":1}`), 0o600),
		os.WriteFile(filepath.Join(t.Dir, task.LogFile), []byte(p.log), 0o600),
	)
	for name, text := range out {
		path := filepath.Join(t.Dir, task.WorkDir, task.OutDir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
	return err
}

func (s *scripted) Status(_ context.Context, tasks []app.Task) ([]app.TaskStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unreachable {
		return nil, errors.New("the cluster does not answer")
	}
	var all []app.TaskStatus
	for _, t := range tasks {
		all = append(all, s.status(s.tasks[t.Token]))
	}
	return all, nil
}

func (s *scripted) status(t *scriptedTask) app.TaskStatus {
	now := time.Now()
	switch {
	case t == nil:
		return app.TaskStatus{State: app.TaskLost, Reason: "the executor does not know it"}
	case now.Before(t.begin) && now.Before(t.end):
		return app.TaskStatus{State: app.TaskStarting, Reason: t.why}
	case now.Before(t.end):
		fraction := float64(now.Sub(t.begin)) / float64(t.end.Sub(t.begin))
		return app.TaskStatus{State: app.TaskRunning, StartedAt: t.begin, Progress: &app.Progress{Fraction: fraction, Basis: t.basis}, Cluster: t.on}
	case t.cause == "":
		return app.TaskStatus{State: app.TaskLost, Reason: "its node went down"}
	}
	o := &app.Outcome{Protocol: 1, EndedAt: t.end, Cause: t.cause, ExitCode: t.exitCode, CPUSeconds: 1, Message: t.message, Warnings: t.warnings, OverMemory: t.overMemory}
	if !t.end.Before(t.begin) {
		o.StartedAt = t.begin
	}
	return app.TaskStatus{State: app.TaskEnded, StartedAt: o.StartedAt, Outcome: o}
}

func (s *scripted) Stop(_ context.Context, t app.Task) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops++
	if p := s.tasks[t.Token]; p != nil {
		if end := time.Now().Add(p.stopTakes); end.Before(p.end) {
			p.end, p.cause = end, app.CauseStopped
		}
	}
	return nil
}

// started returns how many tasks of a job were started.
func (s *scripted) started(id app.JobID) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.order {
		if j == id {
			n++
		}
	}
	return n
}

// count returns how many tasks were started.
func (s *scripted) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.order)
}

func (s *scripted) reach(is bool) {
	s.mu.Lock()
	s.unreachable = !is
	s.mu.Unlock()
}
