package simulation

import (
	"context"
	"testing"
	"time"

	"molrun/app"
)

// TestSabotageIsDetected tests the checks: it does what a broken service would do
// during a run without faults, and the checks must notice.
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

func simple(name string) *submission {
	return &submission{name: name, typ: "short", rows: []jobSettings{{cpus: 1}}}
}

// corrupt changes a job in the store, but not in the ledger.
func (s *simulation) corrupt(change func(app.Tx, *app.Job) error) {
	err := s.process.store.Update(context.Background(), func(tx app.Tx) error {
		j, err := tx.JobNamed("lab", "a")
		if err != nil {
			return err
		}
		return change(tx, j)
	})
	if err != nil {
		panic(err) // a mistake of the test
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
			panic(err) // a mistake of the test
		}
	}
}

// askByWrongNumber asks for all tasks by numbers that they don't have.
func (s *simulation) askByWrongNumber() {
	for _, l := range s.machine.tasks {
		other := l.Task
		other.Handle += "0"
		if _, err := s.machine.status([]app.Task{other}); err != nil {
			panic(err) // a mistake of the test
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
