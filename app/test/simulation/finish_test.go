package simulation

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"molrun/app"
)

// end is a possible outcome of an attempt: the job's new status and the failure code.
type end struct {
	status app.Status
	code   app.FailureCode
}

// judgeFinished checks the outcome of an attempt against the fate of its task.
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
	lost, memory := old.Private.Lost, old.Private.Needs.MemoryBytes
	switch more := moreMemory(old, task); {
	case have.status == app.Queued && more > 0:
		memory = more
		s.raised++
	case have.status == app.Queued:
		lost++
	}
	if now.Private.Lost != lost {
		return fmt.Errorf("its count of lost attempts goes from %d to %d", old.Private.Lost, now.Private.Lost)
	}
	if err := judgeMemory(old, now, memory); err != nil {
		return err
	}
	for _, may := range s.endings(old, task) {
		if may == have {
			return s.checkResult(now)
		}
	}
	return fmt.Errorf("it finishes as %v, but its task allows only %v", have, s.endings(old, task))
}

// endings returns the possible outcomes of an attempt.
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
	if moreMemory(old, task) > 0 && !old.Private.Stop {
		return []end{{app.Queued, ""}}
	}
	return []end{{app.Failed, failures[task.cause]}}
}

// moreMemory returns the memory with which a job is retried after its task has run out of
// memory, or 0 if the job is not retried.
func moreMemory(old *entry, task *startedTask) int64 {
	had := old.Private.Needs.MemoryBytes
	switch {
	case task == nil || task.cause != app.CauseMemory:
		return 0
	case old.Type == "short" && had < 768<<20:
		return min(2*had, 768<<20)
	case old.Type == "quick" && len(old.PastAttempts) < 2:
		return 3 * had
	}
	return 0
}

// judgeMemory checks the memory of a job whose attempt has finished, and its record of
// past attempts.
func judgeMemory(old *entry, now *stored, memory int64) error {
	had := old.Private.Needs.MemoryBytes
	past := old.PastAttempts
	if memory != had {
		past = append(slices.Clone(past), now.PastAttempts[max(0, len(now.PastAttempts)-1):]...)
	}
	switch {
	case now.Private.Needs.MemoryBytes != memory || memory != had && now.MemoryBytes != memory:
		return fmt.Errorf("its memory goes from %d to %d, shown as %d, want %d", had, now.Private.Needs.MemoryBytes, now.MemoryBytes, memory)
	case !slices.Equal(now.PastAttempts, past) || len(past) > 3:
		return fmt.Errorf("its past attempts go from %+v to %+v", old.PastAttempts, now.PastAttempts)
	case memory != had && (past[len(past)-1].Attempt != old.Attempts || past[len(past)-1].MemoryBytes != had):
		return fmt.Errorf("its last past attempt is %+v, want attempt %d with %d bytes", past[len(past)-1], old.Attempts, had)
	}
	return nil
}

var failures = map[app.Cause]app.FailureCode{
	app.CauseExit:        app.FailedExit,
	app.CauseSignal:      app.FailedSignal,
	app.CauseMemory:      app.FailedMemory,
	app.CauseTimeout:     app.FailedTimeout,
	app.CauseCannotStart: app.FailedCannotStart,
}

// endingsWithoutTask is like endings, for attempts whose task never started.
func (s *simulation) endingsWithoutTask(old *entry) []end {
	var all []end
	if old.Private.Worker != "" {
		all = s.endingsInWorker(old)
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

// lost returns the expected outcome of a lost attempt.
func lost(old *entry) end {
	switch {
	case old.Private.Stop:
		return end{app.Failed, app.FailedStopped}
	case old.Private.Lost < old.Private.Retries:
		return end{app.Queued, ""}
	}
	return end{app.Failed, app.FailedLost}
}

// checkResult checks that a completed job has the right result.
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
