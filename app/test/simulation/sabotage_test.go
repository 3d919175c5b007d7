package simulation

import (
	"context"
	"slices"
	"testing"
	"time"

	"molrun/app"
)

// TestSabotageIsDetected tests the checks themselves. In a run without faults it
// misbehaves like a broken service, which the checks must detect.
func TestSabotageIsDetected(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*simulation){
		"a job vanishes":              func(s *simulation) { s.corrupt(func(tx app.Tx, j *app.Job) error { return tx.DeleteJob(j.ID) }) },
		"a record changes":            func(s *simulation) { s.corrupt(promote) },
		"the runner stops":            func(s *simulation) { s.process.cancel() },
		"a task is started twice":     func(s *simulation) { s.startAgain() },
		"a task has another's number": func(s *simulation) { s.askByWrongNumber() },
		"a change has no request": func(s *simulation) {
			s.apply(&change{label: label{"nobody", "lab/a"}, ran: true, jobs: []*jobChange{{s.ledger.highest, nil}}})
		},
	}
	for name, sabotage := range tests {
		t.Run(name, func(t *testing.T) {
			p := plan{seed: 1, reserveAfter: time.Hour}
			job := step{&kind{do: func(s *simulation) {
				s.send(&request{label: label{verb: "submit"}, by: ann, name: "a", submission: simple("a")})
				s.pass(100 * time.Millisecond)
			}}, 1}
			other := step{&kind{do: func(s *simulation) {
				s.pass(seenWithin)
				sabotage(s)
				s.changed = true
				s.send(&request{label: label{verb: "submit"}, by: bob, name: "b", submission: simple("b")})
				s.pass(2 * startsWithin)
			}}, 2}
			p.steps = []step{job, job, other}
			if o := run(t, p); len(o.faults) == 0 {
				t.Errorf("the sabotage was not detected:\n%s", o.trace)
			}
			p.steps = []step{job, job}
			if o := run(t, p); len(o.faults) > 0 {
				t.Errorf("without the sabotage: %s", o.faults[0])
			}
		})
	}
}

// TestSabotageOfWorkersIsDetected does the same for broken workers, executors and runners.
func TestSabotageOfWorkersIsDetected(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*simulation){
		"a row begins twice":                func(s *simulation) { s.machine.sabotage.beginsTwice = true },
		"a returned row begins":             func(s *simulation) { s.machine.sabotage.keepsReturned = true },
		"a worker does not end":             func(s *simulation) { s.machine.sabotage.stays = true },
		"a row gets another's outcome":      func(s *simulation) { s.machine.sabotage.swaps = true },
		"a row that runs is called lost":    func(s *simulation) { s.machine.sabotage.loses = true },
		"a row comes back that may begin":   func(s *simulation) { s.returnTooEarly() },
		"a row gets another's result":       func(s *simulation) { s.exchangeResults() },
		"a row is in a worker of strangers": func(s *simulation) { s.claimForStrangers() },
	}
	for name, sabotage := range tests {
		t.Run(name, func(t *testing.T) {
			smooth := step{&kind{do: func(s *simulation) {
				s.machine.workerFate = func(string, int) workerFate { return workerFate{} }
				s.machine.fate = func(t app.Task) fate {
					f := fate{runs: 300 * time.Millisecond, cause: app.CauseDone}
					if s.names.of(t.Job) == "lab/rowsa-3" {
						f.runs = 3 * longRow // so that the jobs after it return to the queue
					}
					return f
				}
			}}, 1}
			rows := step{&kind{do: func(s *simulation) {
				sub := &submission{name: "rowsa", typ: "quick", batch: true, rows: slices.Repeat([]jobSettings{{cpus: 4}}, 12)}
				s.send(&request{label: label{verb: "batch"}, by: ann, name: sub.name, submission: sub})
				s.pass(500 * time.Millisecond)
			}}, 2}
			broken := step{&kind{do: func(s *simulation) {
				sabotage(s)
				s.pass(20 * time.Second)
			}}, 3}
			p := plan{seed: 1, reserveAfter: time.Hour, steps: []step{smooth, rows, broken}}
			if o := run(t, p); len(o.faults) == 0 {
				t.Errorf("the sabotage was not detected:\n%s", o.trace)
			} else {
				t.Log(o.faults[0])
			}
			p.steps = p.steps[:2]
			if o := run(t, p); len(o.faults) > 0 || o.flights.givenBack == 0 {
				t.Errorf("without the sabotage: %v, %+v", o.faults, o.flights)
			}
		})
	}
}

// waitingRow returns a job that has not begun in its worker.
func (s *simulation) waitingRow() *entry {
	e := s.some(func(e *entry) bool { return e.Private.Worker != "" && s.machine.find(e.Private.Token) == nil })
	if e == nil {
		panic("no job is waiting") // an error in the test itself
	}
	return e
}

// returnTooEarly returns a job to the queue before its worker has returned it.
func (s *simulation) returnTooEarly() {
	e := s.waitingRow()
	p, id, ctx := s.process, e.ID, called(context.Background(), label{"return", s.names.of(e.ID)})
	p.requests.Go(func() { _ = p.Runs.Return(ctx, id, 1) }) // checked when it commits
}

// exchangeResults makes every program write the output of another job.
func (s *simulation) exchangeResults() {
	name := s.machine.nameOf
	s.machine.nameOf = func(id app.JobID) string { return "not " + name(id) }
}

// claimForStrangers has a worker claim jobs using the record of another user's job.
func (s *simulation) claimForStrangers() {
	e := s.waitingRow()
	first := e.Job
	p, ctx := s.process, called(context.Background(), label{"rows", "lab/a"})
	s.send(&request{label: label{verb: "submit"}, by: bob, name: "a", submission: simple("a")})
	s.pass(100 * time.Millisecond)
	p.requests.Go(func() { _, _ = p.Runs.ClaimRows(ctx, &first, app.ClaimLimit{Worker: "X", Rows: 1, Seconds: 100}) }) // checked when it commits
}

func simple(name string) *submission {
	return &submission{name: name, typ: "short", rows: []jobSettings{{cpus: 1}}}
}

// corrupt changes a job in the store but not in the ledger.
func (s *simulation) corrupt(change func(app.Tx, *app.Job) error) {
	err := s.process.store.Update(context.Background(), func(tx app.Tx) error {
		j, err := tx.JobNamed("lab", "a")
		if err != nil {
			return err
		}
		return change(tx, j)
	})
	if err != nil {
		panic(err) // an error in the test itself
	}
}

func promote(tx app.Tx, j *app.Job) error {
	j.Priority++
	return tx.PutJob(j)
}

// startAgain starts all tasks a second time.
func (s *simulation) startAgain() {
	for _, l := range s.machine.tasks {
		if _, err := s.machine.start(l.Task); err != nil {
			panic(err) // an error in the test itself
		}
	}
}

// askByWrongNumber queries every task by the number of another.
func (s *simulation) askByWrongNumber() {
	for _, l := range s.machine.tasks {
		other := l.Task
		other.Handle += "0"
		if _, err := s.machine.status([]app.Task{other}); err != nil {
			panic(err) // an error in the test itself
		}
	}
}

func TestShrinkKeepsFailingSteps(t *testing.T) {
	p := planOf(1)
	first, last := p.steps[3], p.steps[17]
	fails := func(p plan) bool {
		has := map[uint64]bool{}
		for _, s := range p.steps {
			has[s.seed] = true
		}
		return has[first.seed] && has[last.seed]
	}
	short := shrink(p, 1000, fails)
	if len(short.steps) != 2 || short.steps[0] != first || short.steps[1] != last {
		t.Errorf("shrunk to %d steps, want the two that make it fail", len(short.steps))
	}
}
