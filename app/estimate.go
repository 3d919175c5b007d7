package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"molrun/app/algorithm"
	"molrun/app/base/fault"
	"molrun/app/job/eta"
)

// Estimate forecasts the resources and times of a submission. A field without a value is
// unknown.
type Estimate struct {
	Possible   bool            `json:"possible"`
	Detail     []fault.Field   `json:"detail"` // why it is not possible
	Jobs       int             `json:"jobs,omitempty"`
	Slots      []EstimatedSlot `json:"slots,omitempty"`
	Inputs     []Input         `json:"inputs,omitempty"`     // of all jobs, without duplicates
	Queue      *eta.Queue      `json:"queue,omitempty"`      // of the first job
	RunSeconds int64           `json:"runSeconds,omitempty"` // of the longest job, at least 1
	RunBasis   string          `json:"runBasis,omitempty"`
	EndSeconds int64           `json:"endSeconds,omitempty"` // until all jobs have ended, at least 1
	Warnings   []fault.Field   `json:"notes,omitempty"`      // warnings about valid but suspicious settings, without duplicates
}

// EstimatedSlot describes the resources that each of a number of jobs needs.
type EstimatedSlot struct {
	Executor    string `json:"executor"`
	CPUs        int    `json:"cpus"`
	MemoryBytes int64  `json:"memoryBytes"`
	GPUs        int    `json:"gpus"`
	Jobs        int    `json:"jobs"`
}

// Limits on the number of distinct slots and inputs in an estimate.
const (
	maxEstimatedSlots  = 100
	maxEstimatedInputs = 100
)

// Estimates computes estimates, one at a time because each can take a tenth of a second.
type Estimates struct {
	jobs *Jobs
	runs *Runs
	slot chan struct{}
}

// NewEstimates returns the estimates of a service.
func NewEstimates(jobs *Jobs, runs *Runs) *Estimates {
	return &Estimates{jobs, runs, make(chan struct{}, 1)}
}

// Of estimates the submission that plan plans. It returns no error if the submission is
// invalid or can't run here; the estimate says so.
func (e *Estimates) Of(ctx context.Context, plan func(Planner) (*Planned, error)) (*Estimate, error) {
	var invalid *fault.Error
	planned, err := plan(e.jobs.Planner())
	switch {
	case errors.As(err, &invalid) && invalid.Code == fault.Invalid:
		return &Estimate{Detail: invalid.Fields}, nil
	case err != nil:
		return nil, err
	}
	jobs := planned.Jobs()
	est := &Estimate{Possible: true, Detail: []fault.Field{}, Jobs: len(jobs), Slots: estimatedSlots(jobs), Inputs: estimatedInputs(jobs)}
	if err := e.addRunTimes(ctx, est, jobs); err != nil {
		return nil, err
	}
	select {
	case e.slot <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	e.forecastStarts(est, jobs)
	<-e.slot
	est.Warnings = warningsOf(planned)
	return est, nil
}

// maxEstimateNotes is the maximum number of notes in an estimate.
const maxEstimateNotes = 20

// warningsOf returns the warnings defined in the algorithm files, merged over all rows of
// a batch.
func warningsOf(planned *Planned) (notes []fault.Field) {
	said, files := map[string]bool{}, map[string]*algorithm.File{}
	for _, a := range planned.Definitions {
		files[a.Digest] = a
	}
	for _, j := range planned.Jobs() {
		for _, note := range files[j.Private.Definition].SettingsWarnings(j.Private.Normalized, j.Private.Facts) {
			note.Loc = append([]any{"body", "settings"}, note.Loc...)
			if key := fmt.Sprint(note); !said[key] {
				said[key] = true
				notes = append(notes, note)
			}
			if len(notes) == maxEstimateNotes {
				return notes
			}
		}
	}
	return notes
}

// estimatedSlots counts the jobs by the resources they need.
func estimatedSlots(jobs []*Job) []EstimatedSlot {
	var slots []EstimatedSlot
	at := map[EstimatedSlot]int{}
	for _, j := range jobs {
		n := j.Private.Needs
		s := EstimatedSlot{Executor: j.Executor, CPUs: n.CPUs, MemoryBytes: n.MemoryBytes, GPUs: n.GPUs}
		i, known := at[s]
		if !known {
			if len(slots) == maxEstimatedSlots {
				continue
			}
			i, at[s] = len(slots), len(slots)
			slots = append(slots, s)
		}
		slots[i].Jobs++
	}
	return slots
}

func estimatedInputs(jobs []*Job) (inputs []Input) {
	known := map[Input]bool{}
	for _, j := range jobs {
		for _, in := range j.Inputs {
			if len(inputs) == maxEstimatedInputs {
				return inputs
			}
			if !known[in] {
				known[in] = true
				inputs = append(inputs, in)
			}
		}
	}
	return inputs
}

// addRunTimes adds the run time of the longest job, based on the largest job of each
// class.
func (e *Estimates) addRunTimes(ctx context.Context, est *Estimate, jobs []*Job) error {
	largest := map[string]*Job{}
	for _, j := range jobs {
		if l := largest[j.Private.Class]; l == nil || j.Private.Size > l.Private.Size {
			largest[j.Private.Class] = j
		}
	}
	longest := 0.0
	for class, j := range largest {
		h, err := e.runs.History(ctx, class)
		if err != nil {
			return err
		}
		one := h.Estimate(j.Private.Size)
		if !one.Known() {
			est.RunSeconds, est.RunBasis = 0, ""
			return nil
		}
		if seconds := one.Seconds(); seconds >= longest {
			longest = seconds
			est.RunSeconds, est.RunBasis = max(1, int64(math.Round(seconds))), one.Basis(j.Type, j.Version)
		}
	}
	return nil
}

// forecastStarts adds when the first job starts and the last ends. The end stays unknown
// if any job waits for others, or differs from the first in executor or priority.
func (e *Estimates) forecastStarts(est *Estimate, jobs []*Job) {
	var waiting []Waiting
	var first *Job
	for _, j := range jobs {
		if len(j.Private.Waits) > 0 {
			continue
		}
		if first == nil {
			first = j
		}
		if j.Executor == first.Executor && j.Priority == first.Priority {
			waiting = append(waiting, Waiting{
				ID: j.ID, Organization: j.Organization, Email: j.Email, Priority: j.Priority, Needs: j.Private.Needs, Work: j.Work(),
			})
		}
	}
	if first == nil {
		est.Queue = &eta.Queue{BlockedBy: eta.Dependency}
		return
	}
	outlook := e.runs.QueueForecast(first.Executor)
	if outlook == nil {
		return
	}
	f := outlook.Forecast(time.Now(), waiting)
	est.Queue = &f.Queue
	if len(waiting) == len(jobs) {
		est.EndSeconds = f.EndSeconds
	}
}
