package simulation

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"molrun/app"
)

// mostRows is how many rows a batch of short ones has at most.
const mostRows = 12

// submitRows submits a batch of short rows, all alike.
func (s *simulation) submitRows() {
	s.up()
	open := s.ledger.sorted(func(e *entry) bool { return !e.Status.Finished() })
	if s.process == nil || len(open) > maxOpen {
		return
	}
	by := users[s.rng.IntN(len(users))]
	sub := &submission{name: "rows" + string(rune('a'+s.rng.IntN(8))), typ: "quick", batch: true}
	w := jobSettings{cpus: 1 + s.rng.IntN(2)}
	for range 2 + s.rng.IntN(mostRows-1) {
		sub.rows = append(sub.rows, w)
	}
	sub.priority = []int{-1, 0, 0, 0}[s.rng.IntN(4)]
	s.send(&request{label: label{verb: "batch"}, by: by, name: sub.name, submission: sub})
}

// pilotsDir is where the runner has the directories of its pilots.
func (s *site) pilotsDir() string { return filepath.Join(s.dir, "pilots") }

// pilotDir is the directory of a row's pilot.
func (s *site) pilotDir(e *entry) string { return filepath.Join(s.pilotsDir(), e.Private.Pilot) }

// attemptDir is the directory of a job's attempt.
func (s *simulation) attemptDir(e *entry) string {
	return filepath.Join(s.process.files.JobDir(e.ID), strconv.Itoa(e.Attempts))
}

// isRowOf reports whether a claim takes the job as a further row of a pilot.
func (s *simulation) isRowOf(c *change, now *stored) bool {
	return c.label.verb == "rows" || c.label.verb == "claim" && s.names.of(now.ID) != c.label.of
}

// judgeRow checks that a pilot takes a row that is like its first one, and was never tried.
func (s *simulation) judgeRow(c *change, old *entry, now *stored) error {
	var first *app.Job
	for _, e := range s.ledger.jobs {
		if s.names.of(e.ID) == c.label.of {
			first = s.after(c, e.ID)
		}
	}
	if first != nil && first.ID == now.ID {
		return judgeTakeOff(old, now)
	}
	switch {
	case !old.waits() || now.Status != app.Queued || !now.Private.Claimed:
		return fmt.Errorf("a row that is not waiting is claimed")
	case old.Attempts != 0 || now.Attempts != 1:
		return fmt.Errorf("attempt %d of a row that had %d shares a process", now.Attempts, old.Attempts)
	case now.Private.Token == "" || s.ledger.tokens[now.Private.Token] || now.Private.Pilot == "":
		return fmt.Errorf("a row has no token of its own, or no pilot: %+v", now.Private)
	case first != nil && (now.Private.Batch != first.Private.Batch || now.Type != first.Type || !sharesNeeds(now, first) || now.Priority != first.Priority):
		return fmt.Errorf("it shares a process with %s, which is another kind of job", first.Name)
	case first != nil && first.Private.Claimed && first.Private.Pilot != "" && first.Private.Pilot != now.Private.Pilot:
		return fmt.Errorf("its pilot is not that of %s", first.Name)
	case c.label.verb == "rows":
		s.machine.flights.pulled++
		return s.judgeCrowd(now)
	}
	return nil
}

// sharesNeeds compares what a row needs with what the first one needed. That may have got more memory
// since it was in the pilot; judgeStarted compares that of the row with its task.
func sharesNeeds(row *stored, first *app.Job) bool {
	return row.Private.Needs.CPUs == first.Private.Needs.CPUs && row.Private.Needs.GPUs == first.Private.Needs.GPUs
}

// judgeTakeOff checks a first row that gets a pilot after its claim.
func judgeTakeOff(old *entry, now *stored) error {
	same := *now
	same.Private.Pilot = old.Private.Pilot
	return allow(old.Private.Claimed && old.Private.Pilot == "" && now.Private.Pilot != "" && now.shown == old.shown && fmt.Sprint(same.Private) == fmt.Sprint(old.Private),
		"more than its pilot changes")
}

// judgeCrowd checks that a pilot takes more rows only while no other user waits for its
// slot, according to the last scan of the queue.
func (s *simulation) judgeCrowd(row *stored) error {
	if !s.stable() {
		return nil
	}
	for _, e := range s.ledger.sorted((*entry).waits) {
		ahead := e.Priority > row.Priority || e.Priority == row.Priority && userOf(&e.Job) != userOf(&row.Job)
		if ahead && time.Since(e.waitsSince) > startsWithin {
			return fmt.Errorf("a pilot takes more rows, although %s has waited for %v", e.Name, time.Since(e.waitsSince))
		}
	}
	return nil
}

// judgeReturn checks that a row comes back only if it never began, and never will.
func judgeReturn(s *simulation, old *entry, now *stored) error {
	if now.Status != app.Queued {
		return judgeFinished(s, old, now)
	}
	switch {
	case !old.Private.Claimed || old.Private.Pilot == "" || old.Private.Stop || old.Status != app.Queued:
		return fmt.Errorf("a job is given back that is not in a pilot, or runs, or was stopped")
	case now.Private.Claimed || now.Private.Token != "" || now.Private.Pilot != "" || now.Private.Lost != old.Private.Lost || now.Attempts != old.Attempts-1:
		return fmt.Errorf("a row is given back as %s of %+v", brief(&entry{stored: now}), now.Private)
	case s.machine.find(old.Private.Token) != nil:
		return fmt.Errorf("a row is given back that has begun")
	case s.machine.mayBegin(s.attemptDir(old)):
		return fmt.Errorf("a row is given back that may still begin")
	}
	s.machine.flights.givenBack++
	return nil
}

// endingsInPilot returns the ways in which a row may finish that never began.
func (s *simulation) endingsInPilot(old *entry) (all []end) {
	if _, refused := s.machine.startsOf(old.Private.Token); refused {
		all = append(all, end{app.Failed, app.FailedCannotStart})
	}
	if old.Private.Stop || s.machine.lossesOf(s.pilotDir(old)) >= mostLosses {
		all = append(all, lost(old))
	}
	return all
}

// mostLosses is how many pilots have to be lost, one after the other, until a row counts as
// lost that none of them came to.
const mostLosses = 3

// needsSlot reports whether a claimed job without a task needs room for one.
func (s *simulation) needsSlot(e *entry) bool {
	if e.Private.Pilot == "" {
		return true
	}
	_, refused := s.machine.startsOf(e.Private.Token)
	return !e.Private.Stop && !refused && s.machine.lossesOf(s.pilotDir(e)) < mostLosses
}

// holders returns the claimed jobs for which uses returns true. Those that share a process
// are one.
func (s *simulation) holders(uses func(*entry) bool) (all []*entry) {
	seen := map[string]bool{}
	for _, e := range s.ledger.sorted(func(e *entry) bool { return e.Private.Claimed && uses(e) }) {
		p := e.Private.Pilot
		if p == "" || !seen[p] {
			all = append(all, e)
		}
		seen[p] = true
	}
	return all
}

// judgeLanding checks that nothing is left of pilots when all jobs are finished. What a crash
// has left is removed by the next sweep.
func (s *simulation) judgeLanding() {
	left := func() (names []string) {
		entries, err := os.ReadDir(s.pilotsDir())
		if err != nil && !os.IsNotExist(err) {
			s.faultf("the directory of the pilots: %v", err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	s.pass(sweepsWithin)
	if len(s.faults) == 0 && len(left()) > 0 {
		s.pass(time.Hour + sweepsWithin)
	}
	if n := len(left()); n > 0 {
		s.faultf("%d directories of pilots are left", n)
	}
	for _, p := range s.machine.pilots {
		if !p.gone {
			s.faultf("%s still lives, but has nothing to do", p.name)
		}
	}
}

// sweepsWithin is how soon an idle pilot must exit.
const sweepsWithin = 15 * time.Second
