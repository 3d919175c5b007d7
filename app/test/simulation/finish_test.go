package simulation

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"molrun/app"
)

// end is how an attempt may finish: the job's new status and the failure code.
type end struct {
	status app.Status
	code   app.FailureCode
}

// judgeFinished compares how an attempt finished with the fate of its task.
func judgeFinished(s *simulation, old *entry, now *stored) error {
	if !old.Private.Claimed || now.Private.Claimed || now.Private.Token != "" || now.Attempts != old.Attempts {
		return fmt.Errorf("an attempt finishes that had finished before")
	}
	have := end{status: now.Status}
	if now.Failure != nil {
		have.code = now.Failure.Code
	}
	task := s.machine.find(old.Private.Token)
	if task != nil && task.running(time.Now()) {
		return fmt.Errorf("it finishes as %v, but its task still runs", have)
	}
	lost := old.Private.Lost
	if have.status == app.Queued {
		lost++
	}
	if now.Private.Lost != lost {
		return fmt.Errorf("its count of lost attempts goes from %d to %d", old.Private.Lost, now.Private.Lost)
	}
	for _, may := range s.endings(old, task) {
		if may == have {
			return s.checkResult(now)
		}
	}
	return fmt.Errorf("it finishes as %v, but its task allows only %v", have, s.endings(old, task))
}

// endings returns the ways in which an attempt may finish.
func (s *simulation) endings(old *entry, task *startedTask) []end {
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

// endingsWithoutTask is endings for attempts whose task never started.
func (s *simulation) endingsWithoutTask(old *entry) []end {
	var all []end
	if old.Private.Pilot != "" {
		all = s.endingsInPilot(old)
	}
	starts, refused := s.machine.startsOf(old.Private.Token)
	if refused {
		all = append(all, end{app.Failed, app.FailedCannotStart})
	}
	if starts > 0 && !refused || old.Private.Stop {
		all = append(all, lost(old))
	}
	if s.lacksInput(old) {
		all = append(all, end{app.Failed, app.FailedInput})
	}
	return all
}

// lost returns how a lost attempt finishes.
func lost(old *entry) end {
	switch {
	case old.Private.Stop:
		return end{app.Failed, app.FailedStopped}
	case old.Private.Lost < old.Private.Retries:
		return end{app.Queued, ""}
	}
	return end{app.Failed, app.FailedLost}
}

// checkResult checks that a completed job has its result.
func (s *simulation) checkResult(now *stored) error {
	if now.Status != app.Completed {
		return nil
	}
	m, err := s.process.files.Manifest(now.ID)
	if err != nil {
		return fmt.Errorf("it is completed, but has no manifest: %w", err)
	}
	if m.Find(resultFile) < 0 || now.ResultBytes == nil {
		return fmt.Errorf("it is completed, but has no result")
	}
	text, err := os.ReadFile(filepath.Join(s.process.files.JobDir(now.ID), "result", resultFile))
	if err != nil {
		return err
	}
	return allow(string(text) == string(resultOf(s.names.of(now.ID), now.Attempts)), "its result is that of another job or attempt")
}
