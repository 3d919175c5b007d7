package app_test

import (
	"fmt"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/test/must"
)

const gib = 1 << 30

// growFile is an algorithm whose jobs are rerun with more memory.
const growFile = `
format = 1
type = "grow"
version = "1"
title = "Grow"
retries = 1
command = ["true"]
[resources]
memory = "{settings.gb}GiB"
[[parameters]]
name = "gb"
type = "integer"
default = 1
[retry]
on = ["OUT_OF_MEMORY"]
`

// outOfMemory returns an out-of-memory ending for an attempt, as the runner does.
func (s *site) outOfMemory(j *app.Job) app.Ending {
	s.t.Helper()
	alg, err := s.Runs.AlgorithmOf(s.t.Context(), j)
	must.OK(s.t, err)
	begin := s.Now()
	e := app.Ending{
		Outcome: &app.Outcome{Cause: app.CauseMemory, StartedAt: begin, EndedAt: begin.Add(time.Minute), CPUSeconds: 30, MaxRSSBytes: 7},
		Failure: &app.Failure{Code: app.FailedMemory, Message: "It ran out."},
	}
	var why string
	if e.MoreMemory, why = s.Runs.MoreMemory(alg, j); why != "" {
		e.Failure.Message += " " + why
	}
	return e
}

// queuedMemory returns the memory requirement of a job in the queue, or 0 if it is not
// queued.
func (s *site) queuedMemory(id app.JobID) (bytes int64) {
	s.t.Helper()
	must.OK(s.t, s.Runs.Queue(s.t.Context(), "local", func(w app.Waiting) app.Visit {
		if w.ID == id {
			bytes = w.Needs.MemoryBytes
		}
		return app.NextJob
	}))
	return bytes
}

func TestJobThatRanOutOfMemoryStartsAgainWithMore(t *testing.T) {
	s := newSite(t, growFile+"most = \"6GiB\"\nattempts = 4\n")
	id := s.SubmitOf("grow", ann, "a", `{}`)
	run := func(attempt int) {
		t.Helper()
		e := s.outOfMemory(s.Start(id))
		for range 2 { // the second call has no effect
			must.OK(t, s.Runs.Finish(t.Context(), id, attempt, e))
		}
	}
	had := []int64{gib, 2 * gib, 4 * gib, 6 * gib}
	var past []app.PastAttempt
	for i, bytes := range had[:3] {
		run(i + 1)
		past = append(past, app.PastAttempt{Attempt: i + 1, Code: app.FailedMemory, Message: "It ran out.", MemoryBytes: bytes, MaxRSSBytes: 7, RunSeconds: 60})
		j := s.storedJob(id)
		if j.Status != app.Queued || j.Private.Claimed || j.Failure != nil || j.Metrics != nil || !j.StartedAt.IsZero() {
			t.Fatalf("after attempt %d: %+v", i+1, j)
		}
		must.Equal(t, "past attempts", j.PastAttempts, past)
		must.Equal(t, "needs, memory shown and queued", []int64{j.Private.Needs.MemoryBytes, j.MemoryBytes, s.queuedMemory(id)}, []int64{had[i+1], had[i+1], had[i+1]})
	}
	must.Equal(t, "reason", s.job(ann, "a").StatusReason, "attempt 3 ran out of its 4.0 GiB of memory; waiting for the next, with 6.0 GiB")
	run(4)
	j := s.job(ann, "a")
	must.Equal(t, "at the most", fmt.Sprint(j.Status, " ", j.Failure.Code, ": ", j.Failure.Message), "FAILED OUT_OF_MEMORY: It ran out. It had 6.0 GiB; the maximum for grow is 6.0 GiB.")
	must.Equal(t, "past attempts of the failed job", j.PastAttempts, past)
	if spent := s.storedJob(id).Private.Spent; spent.Ended != 4 || spent.RunMillis != 4*60e3 || spent.CPUMillis != 4*30e3 {
		t.Errorf("spent %+v, want the usage of four attempts", spent)
	}
	s.retry(ann, "a")
	if j := s.storedJob(id); len(j.PastAttempts) != 0 || j.Private.Needs.MemoryBytes != had[3] || j.MemoryBytes != had[3] {
		t.Errorf("after a retry: %d past attempts and %d bytes, want none and what it had", len(j.PastAttempts), j.Private.Needs.MemoryBytes)
	}
}

func TestJobFailsThatCanGetNoMoreMemory(t *testing.T) {
	for name, tt := range map[string]struct {
		keys, settings string
		attempts       int
		want           string
	}{
		"the machine has no more": {"", `{"gb":3}`, 3, "It ran out. It had 8.0 GiB, and no suitable machine has more."},
		"often enough":            {"attempts = 1\n", `{}`, 2, "It ran out. Its memory was raised once, the maximum for grow."},
		"as often as by default":  {"memory = 1.5\n", `{}`, 4, "It ran out. Its memory was raised 3 times, the maximum for grow."},
		"it had the maximum":      {"most = \"2GiB\"\n", `{"gb":4}`, 1, "It ran out. It had 4.0 GiB; the maximum for grow is 2.0 GiB."},
		"nothing is reserved":     {"", `{"gb":0}`, 1, "It ran out."},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, growFile+tt.keys)
			id := s.SubmitOf("grow", ann, "a", tt.settings)
			for attempt := 1; attempt <= tt.attempts; attempt++ {
				j := s.Start(id)
				must.OK(t, s.Runs.Finish(t.Context(), id, attempt, s.outOfMemory(j)))
			}
			j := s.job(ann, "a")
			must.Equal(t, "the job", fmt.Sprint(j.Status, " after ", j.Attempts, ": ", j.Failure), fmt.Sprint("FAILED after ", tt.attempts, ": ", &app.Failure{Code: app.FailedMemory, Message: tt.want}))
		})
	}
	s := newSite(t)
	j := s.Start(s.submit(ann, "a", `{}`).ID)
	must.OK(t, s.Runs.Finish(t.Context(), j.ID, 1, s.outOfMemory(j)))
	s.wantStandings("without [retry]", map[string]string{"a": "FAILED OUT_OF_MEMORY"})
}

// TestCancelledJobGetsNoMoreMemory has a job run out of memory while it is being stopped.
func TestCancelledJobGetsNoMoreMemory(t *testing.T) {
	s := newSite(t, growFile)
	j := s.Start(s.SubmitOf("grow", ann, "a", `{}`))
	e := s.outOfMemory(j)
	s.cancel(ann, "a")
	must.OK(t, s.Runs.Finish(t.Context(), j.ID, 1, e))
	s.wantStandings("stopped", map[string]string{"a": "FAILED OUT_OF_MEMORY"})
}

// TestLostAttemptKeepsTheMemory has a job lose the attempt after the one that ran out of
// memory.
func TestLostAttemptKeepsTheMemory(t *testing.T) {
	s := newSite(t, growFile)
	id := s.SubmitOf("grow", ann, "a", `{}`)
	must.OK(t, s.Runs.Finish(t.Context(), id, 1, s.outOfMemory(s.Start(id))))
	s.Run(id, app.Ending{Lost: "the machine was restarted"})
	if j := s.storedJob(id); j.Status != app.Queued || j.Private.Needs.MemoryBytes != 2*gib || len(j.PastAttempts) != 1 {
		t.Errorf("after a lost attempt: %s with %d bytes and %d past attempts", j.Status, j.Private.Needs.MemoryBytes, len(j.PastAttempts))
	}
	s.Run(id, success())
	if j := s.storedJob(id); j.Status != app.Completed || j.Attempts != 3 || len(j.PastAttempts) != 1 {
		t.Errorf("at the end: %+v", j)
	}
}
