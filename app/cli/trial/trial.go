// Package trial runs the examples of algorithms through the API of a service, and reports
// how their results differ from what the algorithm files specify.
package trial

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"molrun/app/algorithm"
	"molrun/app/client"
)

// Tester runs examples with its client's API key.
type Tester struct {
	API      *client.Client
	Patience time.Duration // time limit of one example, from submission to finish
	// Probe returns an error if an algorithm's program does not work where jobs run. It
	// returns nil if the program works or can't be tested. A nil Probe skips the test.
	Probe func(context.Context, *algorithm.File) error
}

// Outcome is the outcome of one example.
type Outcome struct {
	Type           string   `json:"type"`
	Version        string   `json:"version"`
	Ready          bool     `json:"ready"`
	Missing        []string `json:"missing,omitempty"` // why it is not ready
	Job            string   `json:"job,omitempty"`
	Status         string   `json:"status,omitempty"`  // job status; "" means that no job was submitted
	Seconds        float64  `json:"seconds"`           // run time
	Metrics        []Metric `json:"metrics"`           // metrics with a range in the file
	MissingMetrics []string `json:"unfound,omitempty"` // metrics of the file that the result lacks
	Views          []View   `json:"views"`
	Faults         []string `json:"faults"`            // empty if all checks passed
	LogTail        string   `json:"logTail,omitempty"` // for a failed job
}

// Passed reports whether the example ran and passed all checks.
func (o *Outcome) Passed() bool { return o.Ready && len(o.Faults) == 0 }

func (o *Outcome) failf(format string, args ...any) {
	o.Faults = append(o.Faults, fmt.Sprintf(format, args...))
}

// TestAll runs the examples of algorithms, atOnce at a time, and shows the outcomes in
// order, each as soon as it and all earlier ones are available.
func (t *Tester) TestAll(ctx context.Context, all []*algorithm.File, atOnce int, show func(*Outcome)) {
	outcomes := make([]chan *Outcome, len(all))
	for i := range outcomes {
		outcomes[i] = make(chan *Outcome, 1)
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(1, min(atOnce, len(all))) {
		workers.Go(func() {
			for i := range next {
				outcomes[i] <- t.Test(ctx, all[i])
			}
		})
	}
	workers.Go(func() {
		for i := range all {
			next <- i
		}
		close(next)
	})
	for _, outcome := range outcomes {
		show(<-outcome)
	}
	workers.Wait()
}

// Test runs one example. When ctx ends, it cancels the job before it returns.
func (t *Tester) Test(ctx context.Context, a *algorithm.File) *Outcome {
	o := &Outcome{Type: a.Type, Version: a.Version, Metrics: []Metric{}, Views: []View{}, Faults: []string{}}
	offered, err := t.API.Algorithm(ctx, a.Type, a.Version)
	if err != nil {
		o.failf("check whether it is ready: %v", err)
		return o
	}
	if o.Ready, o.Missing = offered.Ready, offered.Missing; !o.Ready {
		return o
	}
	if t.Probe != nil {
		if err := t.Probe(ctx, a); err != nil {
			o.failf("%v", err)
			return o
		}
	}
	if a.Example == nil {
		o.failf("the file has no [example]")
		return o
	}
	job, err := t.runExample(ctx, a)
	if job != nil {
		o.Job, o.Status = job.Name, job.Status
	}
	if err != nil {
		o.failf("%s", sentence(err))
		return o
	}
	t.checkJob(ctx, a, job, o)
	return o
}

// errPatience is the cause when the time limit ends a wait.
var errPatience = errors.New("it did not finish in time")

// runExample submits the example and waits for it to finish. If it returns an error, it
// also returns the job, if there is one.
func (t *Tester) runExample(ctx context.Context, a *algorithm.File) (*client.Job, error) {
	settings, err := t.Settings(ctx, a)
	if err != nil {
		return nil, err
	}
	name := a.Type + "-" + strings.ToLower(rand.Text()[:8])
	ctx, cancel := context.WithTimeoutCause(ctx, t.Patience, errPatience)
	defer cancel()
	if _, err = t.API.Submit(ctx, client.Submission{Name: name, Type: a.Type, Version: a.Version, Settings: settings}); err != nil {
		return nil, err // if interrupted, the caller stops all jobs
	}
	job, err := t.API.Wait(ctx, name)
	if ctx.Err() == nil || err == nil {
		return job, err
	}
	job, stopping := t.stop(ctx, name)
	return job, errors.Join(context.Cause(ctx), stopping)
}

// stopPatience limits how long a canceled job can take to stop.
const stopPatience = time.Minute

// stop cancels a job and waits until its processes have exited.
func (t *Tester) stop(ctx context.Context, name string) (*client.Job, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	_, err := t.API.Cancel(ctx, name)
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == 409 {
		err = nil // already finished
	}
	if err != nil {
		return nil, err
	}
	return t.API.Wait(ctx, name)
}

// StopAll cancels the unfinished jobs and waits until their processes have exited.
func (t *Tester) StopAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	var errs []error
	for job, err := range t.API.Jobs(ctx, client.JobFilter{}) {
		if err == nil && !job.Finished() {
			_, err = t.stop(ctx, job.Name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// sentence formats an error for the report.
func sentence(err error) string {
	refused, ok := errors.AsType[*client.Error](err)
	switch {
	case ok && len(refused.Details) > 0:
		return "the example was rejected: " + strings.ReplaceAll(refused.Error(), "\n", "; ")
	case ok:
		return fmt.Sprintf("the service responded %d %s: %s", refused.Status, cmp.Or(refused.Code, "?"), refused.Message)
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return err.Error()
}
