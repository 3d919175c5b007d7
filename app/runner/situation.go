package runner

import "molrun/app"

// situation is what is known of a claimed job. It is the same whether the
// runner has followed the job all along or has just found it.
type situation struct {
	begun  bool // its task may have begun: there is a handle or run.json
	stop   bool // it was cancelled
	seen   bool // the executor has told about the task
	status app.TaskStatus
}

// step is what to do next for a claimed job.
type step int

const (
	stepPrepare step = iota // prepare its directory from scratch and start its task
	stepWatch               // wait for news
	stepStop                // stop its task and wait for news
	stepCollect             // keep the result
	stepFail                // record why it failed
	stepLose                // record that it was lost
)

// next returns the next step. A task is started only if no other one of the job
// can be alive: none was ever started, or the executor says that none is left
// and none had begun.
func (s situation) next() step {
	if !s.seen { // just claimed, or just started
		switch {
		case s.begun && s.stop:
			return stepStop
		case s.begun:
			return stepWatch
		case s.stop:
			return stepLose
		}
		return stepPrepare
	}
	switch s.status.State {
	case app.TaskStarting, app.TaskRunning:
		if s.stop {
			return stepStop
		}
		return stepWatch
	case app.TaskEnded:
		// The outcome alone counts: a job that was done before it could be
		// stopped is completed.
		switch o := s.status.Outcome; {
		case o == nil || o.Cause == app.CauseInterrupted:
			return stepLose
		case o.Cause == app.CauseDone:
			return stepCollect
		}
		return stepFail
	}
	if s.begun || s.stop {
		return stepLose
	}
	return stepPrepare
}
