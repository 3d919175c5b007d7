// Package status reports the state of the service to admins: which jobs run and wait on
// each executor, and the usage of the machine and the disk.
package status

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/unit"
)

// Executor is an executor to report on. State returns "ok" if it is available.
type Executor struct {
	app.Executor
	State func() string
}

// Reports creates reports.
type Reports struct {
	store     app.Store
	blobs     app.Blobs
	runs      *app.Runs
	executors []Executor
	began     time.Time
}

// New returns the reports of a service that was started at began.
func New(store app.Store, blobs app.Blobs, runs *app.Runs, executors []Executor, began time.Time) *Reports {
	return &Reports{store, blobs, runs, executors, began}
}

// Report is the state of the service. It lists jobs and queue lines of one organization,
// and only totals for others.
type Report struct {
	StartedAt unit.Time       `json:"startedAt"`
	Drain     *app.Drain      `json:"drain,omitempty"` // nil if jobs are started
	Disk      app.Disk        `json:"disk"`
	Executors []ExecutorState `json:"executors"`
}

// ExecutorState is the state of an executor.
type ExecutorState struct {
	Name     string               `json:"name"`
	State    string               `json:"state"`
	Capacity *placement.Resources `json:"capacity,omitempty"` // nil if it has its own queue
	Used     placement.Resources  `json:"used"`               // by all organizations
	Faulty   []FaultyGPU          `json:"faultyGpus,omitempty"`
	Running  int                  `json:"running"` // including jobs being started
	Queued   int                  `json:"queued"`
	Others   Others               `json:"others"`
	Queue    []Line               `json:"queue"`
}

// FaultyGPU is a GPU that jobs can't use.
type FaultyGPU struct {
	Name   string       `json:"name"`
	Fault  app.GPUFault `json:"fault"`
	Reason string       `json:"reason"`
}

// Others counts the jobs of other organizations.
type Others struct {
	Running int `json:"running"`
	Queued  int `json:"queued"`
}

// Line is the queued jobs of one user and priority.
type Line struct {
	Email    string `json:"email"`
	Priority int    `json:"priority"`
	Jobs     int    `json:"jobs"`
}

// Of returns a report for a caller.
func (r *Reports) Of(ctx context.Context, by app.Caller) (*Report, error) {
	report := &Report{StartedAt: unit.At(r.began), Drain: r.runs.Drained()}
	err := r.store.View(ctx, func(tx app.Tx) error {
		report.Executors = make([]ExecutorState, len(r.executors))
		byName := map[string]*ExecutorState{}
		for i, e := range r.executors {
			s := &report.Executors[i]
			s.Name, s.State = e.Name(), e.State()
			s.Capacity, s.Faulty = capacityOf(e)
			byName[s.Name] = s
			if err := s.addQueue(tx, by); err != nil {
				return err
			}
		}
		return addRunning(tx, by, byName)
	})
	if err != nil {
		return nil, err
	}
	report.Disk, err = r.blobs.Disk()
	return report, err
}

func capacityOf(e Executor) (*placement.Resources, []FaultyGPU) {
	c, bounded := e.Capacity()
	if !bounded {
		return nil, nil
	}
	var faulty []FaultyGPU
	for _, g := range c.FaultyGPUs {
		faulty = append(faulty, FaultyGPU{g.Name, g.Fault, g.Text})
	}
	return &placement.Resources{CPUs: c.CPUs, MemoryBytes: c.MemoryBytes, GPUs: len(c.GPUs)}, faulty
}

func (s *ExecutorState) addQueue(tx app.Tx, by app.Caller) error {
	lines, err := tx.QueueLines(s.Name)
	s.Queue = []Line{}
	for _, l := range lines {
		if l.Organization != by.Organization {
			s.Others.Queued += l.Count
			continue
		}
		s.Queued += l.Count
		s.Queue = append(s.Queue, Line{l.Email, l.Priority, l.Count})
	}
	slices.SortFunc(s.Queue, func(a, b Line) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Jobs, a.Jobs), strings.Compare(a.Email, b.Email))
	})
	return err
}

// addRunning adds the claimed jobs, whose number is limited by the capacity of this
// machine or by a cluster's task limit.
func addRunning(tx app.Tx, by app.Caller, executors map[string]*ExecutorState) error {
	for j, err := range tx.Active() {
		if err != nil {
			return err
		}
		s := executors[j.Executor]
		if s == nil {
			continue
		}
		needs := j.Private.Needs
		s.Used.CPUs, s.Used.MemoryBytes, s.Used.GPUs = s.Used.CPUs+needs.CPUs, s.Used.MemoryBytes+needs.MemoryBytes, s.Used.GPUs+needs.GPUs
		if j.Organization == by.Organization {
			s.Running++
		} else {
			s.Others.Running++
		}
	}
	return nil
}
