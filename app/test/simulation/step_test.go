package simulation

import (
	"context"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/job/apikey"
)

// maxOpen is the maximum number of unfinished jobs. The scheduler considers no more than
// this many jobs of one user, so with more of them the rules of turn_test.go would not
// hold.
const maxOpen = 24

// kind is a kind of step.
type kind struct {
	name   string
	weight int
	sort   sort
	do     func(*simulation)
}

// sort determines which plans include a kind of step.
type sort int

const (
	always    sort = iota
	sometimes      // in two out of three plans
	trouble        // the same, but not in plans without faults
)

// requests are the kinds of steps that send a request.
var requests = []kind{
	{"a job is submitted", 30, always, func(s *simulation) { s.submit(false) }},
	{"a batch is submitted", 8, sometimes, func(s *simulation) { s.submit(true) }},
	{"something is submitted again", 8, sometimes, (*simulation).resubmit},
	{"a job is cancelled", 8, sometimes, func(s *simulation) { s.changeJob("cancel") }},
	{"a job is retried", 8, sometimes, func(s *simulation) { s.changeJob("retry") }},
	{"a job is deleted", 8, sometimes, func(s *simulation) { s.changeJob("delete") }},
	{"a job is pinned", 5, sometimes, func(s *simulation) { s.changeJob("pin") }},
	{"a job is unpinned", 3, sometimes, func(s *simulation) { s.changeJob("unpin") }},
	{"the operator prunes", 4, sometimes, (*simulation).prune},
	{"retention deletes old jobs", 4, sometimes, (*simulation).retain},
	{"a user waits for a job", 8, sometimes, (*simulation).wait},
	{"a file is deleted", 4, sometimes, (*simulation).eraseFile},
	{"a file is sent, or a part of one", 22, sometimes, (*simulation).sendPart},
}

// kinds lists all kinds of steps.
var kinds = slices.Concat(requests, []kind{
	{"short rows are submitted", 12, always, (*simulation).submitRows},
	{"a webhook is managed", 12, sometimes, (*simulation).manageHook},
	{"a report is late", 3, trouble, (*simulation).late},
	{"several requests at once", 12, always, (*simulation).several},
	{"files are swept", 3, sometimes, (*simulation).cleanUp},
	{"a receiver changes", 10, sometimes, (*simulation).changeReceiver},
	{"a user listens", 8, sometimes, (*simulation).listen},
	{"time passes", 16, always, func(s *simulation) { s.pass(seconds(s.rng, 40)) }},
	{"a crash is imminent", 8, trouble, func(s *simulation) { s.crashIn = 1 + s.rng.IntN(12) }},
	{"a restart", 3, trouble, (*simulation).restart},
	{"the clock jumps", 4, sometimes, (*simulation).jump},
	{"the disk is full", 4, trouble, (*simulation).fill},
	{"the machine is unreachable", 4, trouble, (*simulation).unreachable},
	{"everything is slow", 4, trouble, (*simulation).slow},
})

// submit sends a new submission.
func (s *simulation) submit(batch bool) {
	s.up()
	open := s.ledger.sorted(func(e *entry) bool { return !e.Status.Finished() })
	if s.process == nil || len(open) > maxOpen {
		return
	}
	by := users[s.rng.IntN(len(users))]
	sub := s.randomSubmission(s.rng, by, batch)
	s.send(&request{label: label{verb: verbOf(sub)}, by: by, name: sub.name, submission: sub})
}

func verbOf(sub *submission) string {
	if sub.batch {
		return "batch"
	}
	return "submit"
}

// resubmit repeats a submission: unchanged, in a different notation, or with a change
// that makes it different work.
func (s *simulation) resubmit() {
	s.up()
	e := s.some(func(e *entry) bool { return e.submission != nil && e.Private.Batch == "" })
	if s.process == nil || e == nil {
		return
	}
	sub := *e.submission
	sub.rows = slices.Clone(sub.rows)
	row := &sub.rows[s.rng.IntN(len(sub.rows))]
	switch choice := s.rng.IntN(4); {
	case choice == 0:
		row.explicit = !row.explicit
	case choice == 1:
		row.cpus = 1 + row.cpus%4
	}
	by := app.Caller{Organization: e.Organization, Email: e.Email, Rights: apikey.Admin.Rights()}
	s.send(&request{label: label{verb: verbOf(&sub)}, by: by, name: sub.name, submission: &sub})
}

// some returns a random job for which fits returns true, or nil if there is none.
func (s *simulation) some(fits func(*entry) bool) *entry {
	all := s.ledger.sorted(fits)
	if len(all) == 0 {
		return nil
	}
	return all[s.rng.IntN(len(all))]
}

// changeJob has a user change a job. In most cases the job exists and the user is allowed
// to change it.
func (s *simulation) changeJob(verb string) {
	s.up()
	if s.process == nil {
		return
	}
	e := s.some(func(e *entry) bool {
		switch verb {
		case "retry":
			return e.Status == app.Failed
		case "delete", "pin":
			return e.Status.Finished()
		case "unpin":
			return e.Pinned
		}
		return !e.Status.Finished()
	})
	if verb == "cancel" && s.rng.IntN(2) == 0 { // prefer a job that has not begun in its worker
		row := s.some(func(e *entry) bool { return e.Private.Worker != "" && s.machine.find(e.Private.Token) == nil })
		if row != nil {
			e = row
		}
	}
	if e == nil || s.rng.IntN(6) == 0 {
		e = s.some(func(*entry) bool { return true })
	}
	by, name := users[s.rng.IntN(len(users))], string(rune('a'+s.rng.IntN(8)))
	if e != nil {
		name = e.Name
		if s.rng.IntN(5) > 0 {
			by = app.Caller{Organization: e.Organization, Email: e.Email, Rights: apikey.Member.Rights()}
		}
	}
	s.send(&request{label: label{verb: verb}, by: by, name: name, alone: verb == "cancel" && s.rng.IntN(4) == 0})
}

// several sends requests that all arrive before the first one is handled.
func (s *simulation) several() {
	for range 2 + s.rng.IntN(3) {
		requests[s.rng.IntN(len(requests))].do(s)
		synctest.Wait() // until the request waits at the door
	}
}

// late reports the end of an attempt that has already finished, which must change
// nothing.
func (s *simulation) late() {
	s.up()
	e := s.some(func(e *entry) bool { return e.Attempts > 1 || e.Attempts == 1 && !e.Private.Claimed })
	if s.process == nil || e == nil {
		return
	}
	attempt := e.Attempts
	if e.Private.Claimed {
		attempt--
	}
	p, id, l := s.process, e.ID, label{"late report", s.names.of(e.ID)}
	p.requests.Go(func() {
		err := p.Runs.Finish(called(context.Background(), l), id, attempt, app.Ending{Outcome: &app.Outcome{Cause: app.CauseDone}})
		if err != nil && !p.door.isDead() {
			s.answers <- func() { s.faultf("%s: %v", l, err) }
		}
	})
}

// restart stops the process gracefully, as an administrator would. Pending requests get
// their responses first.
func (s *simulation) restart() {
	s.up()
	if s.process == nil {
		return
	}
	s.crashIn = 0
	for len(s.requests) > 0 && len(s.faults) == 0 && s.process != nil {
		s.pass(time.Second)
	}
	if s.process == nil {
		return
	}
	s.tracef("stopping the process")
	s.stopping = s.process
	s.bootAt = time.Now().Add(seconds(s.rng, 5))
	s.process.cancel()
	for begin := time.Now(); s.stopping != nil && len(s.faults) == 0; s.pass(time.Second) {
		if time.Since(begin) > 2*time.Minute {
			s.faultf("the process does not stop")
		}
	}
	s.bootAt = time.Now().Add(seconds(s.rng, 5))
}

// jump changes the wall clock, which affects only the times in records.
func (s *simulation) jump() {
	by := seconds(s.rng, 5000)
	if s.rng.IntN(2) == 0 {
		by = -by
	}
	s.offset.Add(int64(by))
	s.clockJumped()
	s.jumped = time.Now()
	s.tracef("clocks are off by %v", time.Duration(s.offset.Load()))
}

// fill makes the disk full for a while, sometimes for longer than the runner keeps
// retrying.
func (s *simulation) fill() {
	s.fullUntil = time.Now().Add(seconds(s.rng, 60))
	s.unstableUntil(s.fullUntil.Add(retriedWithin))
	s.tracef("until %v", s.fullUntil.Sub(s.begin))
}

func (s *simulation) unreachable() {
	until := time.Now().Add(seconds(s.rng, 60))
	s.machine.makeUnreachable(until)
	s.unstableUntil(until.Add(retriedWithin))
	s.tracef("until %v", until.Sub(s.begin))
}

func (s *simulation) slow() {
	s.slowUntil = time.Now().Add(seconds(s.rng, 60))
	s.unstableUntil(s.slowUntil.Add(time.Minute + retriedWithin))
	s.tracef("until %v", s.slowUntil.Sub(s.begin))
}

// fullSince reports whether the disk has been full at any time since t.
func (s *simulation) fullSince(t time.Time) bool { return !s.fullUntil.Before(t) }

// inOrder returns the pending requests, oldest first.
func (s *simulation) inOrder() []*request {
	var all []*request
	for _, r := range s.requests {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b *request) int { return strings.Compare(a.label.String(), b.label.String()) })
	return all
}
