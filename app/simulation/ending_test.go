package simulation

import (
	"fmt"
	"time"

	"molrun/app"
)

// end is how an attempt may be settled: a state and why.
type end struct {
	status app.Status
	code   app.FailureCode
}

// judgeFinished compares the end of an attempt with the fate of its task.
func judgeFinished(s *simulation, old *entry, now *stored) error {
	if !old.Private.Claimed || now.Private.Claimed || now.Private.Token != "" || now.Attempts != old.Attempts {
		return fmt.Errorf("an attempt ends that had ended before")
	}
	s.round.ended++
	have := end{status: now.Status}
	if now.Failure != nil {
		have.code = now.Failure.Code
	}
	task := s.machine.find(old.Private.Token)
	if task != nil && task.lives(time.Now()) {
		return fmt.Errorf("it is settled as %v while its task lives", have)
	}
	lost := old.Private.Lost
	if have.status == app.Queued {
		lost++
	}
	if now.Private.Lost != lost {
		return fmt.Errorf("its lost attempts go from %d to %d", old.Private.Lost, now.Private.Lost)
	}
	for _, may := range s.endings(old, task) {
		if may == have {
			return s.keptResult(now)
		}
	}
	return fmt.Errorf("it is settled as %v, its task allows %v", have, s.endings(old, task))
}

// endings gives the ways in which an attempt may be settled.
func (s *simulation) endings(old *entry, task *living) []end {
	if task == nil {
		return s.endingsWithoutTask(old)
	}
	switch task.cause {
	case app.CauseDone:
		return []end{{app.Completed, ""}}
	case app.CauseStopped:
		return []end{{app.Failed, app.FailedStopped}}
	case "", app.CauseInterrupted:
		return []end{lost(old)}
	}
	return []end{{app.Failed, failures[task.cause]}}
}

var failures = map[app.Cause]app.FailureCode{
	app.CauseExit:        app.FailedExit,
	app.CauseSignal:      app.FailedSignal,
	app.CauseMemory:      app.FailedMemory,
	app.CauseTimeout:     app.FailedTimeout,
	app.CauseCannotStart: app.FailedCannotStart,
}

// endingsWithoutTask is about attempts that never came to life.
func (s *simulation) endingsWithoutTask(old *entry) []end {
	var all []end
	starts, refused := s.machine.startsOf(old.Private.Token)
	if refused {
		all = append(all, end{app.Failed, app.FailedCannotStart})
	}
	if starts > 0 && !refused || old.Private.Stop {
		all = append(all, lost(old))
	}
	for _, src := range old.Private.References {
		if s.ledger.jobs[src.Job] == nil {
			all = append(all, end{app.Failed, app.FailedInput})
		}
	}
	return all
}

// lost gives how a lost attempt is settled.
func lost(old *entry) end {
	switch {
	case old.Private.Stop:
		return end{app.Failed, app.FailedStopped}
	case old.Private.Lost < old.Private.Retries:
		return end{app.Queued, ""}
	}
	return end{app.Failed, app.FailedLost}
}

// keptResult looks whether a completed job has its result.
func (s *simulation) keptResult(now *stored) error {
	if now.Status != app.Completed {
		return nil
	}
	m, err := s.process.files.Manifest(now.ID)
	if err != nil {
		return fmt.Errorf("it is completed without a manifest: %w", err)
	}
	return allow(m.Find(resultFile) >= 0 && now.ResultBytes != nil, "it is completed without its result")
}
