package slurm

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/task"
	"molrun/app/test/must"
)

// TestEndings combines Slurm's record of a job with the task's outcome.
func TestEndings(t *testing.T) {
	outcome := func(c app.Cause) *app.Outcome { return &app.Outcome{Cause: c, CPUSeconds: 7} }
	const lost = "" // as a cause: the task is lost
	tests := []struct {
		name string
		ending
		want  app.Cause
		words string
	}{
		{"both report success", ending{jobRecord: jobRecord{State: "COMPLETED"}, outcome: outcome(app.CauseDone)}, app.CauseDone, ""},
		{"the outcome reports a failure", ending{jobRecord: jobRecord{State: "COMPLETED"}, outcome: outcome(app.CauseExit)}, app.CauseExit, ""},
		{"orderly shutdown of the machine", ending{jobRecord: jobRecord{State: "COMPLETED"}, outcome: outcome(app.CauseInterrupted)}, app.CauseInterrupted, ""},
		{"no outcome", ending{jobRecord: jobRecord{State: "COMPLETED", Node: "n1"}}, lost, "on node n1"},
		{"its last log line", ending{jobRecord: jobRecord{State: "FAILED", Code: 1}, logLine: "the disk is full"}, lost, "the disk is full"},
		{"killed", ending{jobRecord: jobRecord{State: "FAILED", Signal: 9}}, app.CauseSignal, "memory"},
		{"no shared directory", ending{jobRecord: jobRecord{State: "FAILED", Code: 75, Node: "n1"}}, lost, "n1 can't access"},
		{"requeued", ending{jobRecord: jobRecord{State: "FAILED", Code: 76}}, lost, "requeued"},
		{"too much memory, but the program finished", ending{jobRecord: jobRecord{State: "OUT_OF_MEMORY"}, outcome: outcome(app.CauseDone)}, app.CauseMemory, "memory"},
		{"too much memory", ending{jobRecord: jobRecord{State: "OUT_OF_MEMORY"}}, app.CauseMemory, "memory"},
		{"Slurm's time limit", ending{jobRecord: jobRecord{State: "TIMEOUT"}, outcome: outcome(app.CauseInterrupted)}, app.CauseTimeout, ""},
		{"a deadline", ending{jobRecord: jobRecord{State: "DEADLINE"}}, app.CauseTimeout, ""},
		{"preempted", ending{jobRecord: jobRecord{State: "PREEMPTED"}, outcome: outcome(app.CauseInterrupted)}, lost, "preempted in Slurm"},
		{"the node failed", ending{jobRecord: jobRecord{State: "NODE_FAIL", Node: "n1"}}, lost, "node n1 failed"},
		{"the node failed after the task was done", ending{jobRecord: jobRecord{State: "NODE_FAIL"}, outcome: outcome(app.CauseDone)}, app.CauseDone, ""},
		{"the node failed while the task was interrupted", ending{jobRecord: jobRecord{State: "NODE_FAIL"}, outcome: outcome(app.CauseInterrupted)}, lost, ""},
		{"preempted when the task was done", ending{jobRecord: jobRecord{State: "PREEMPTED"}, outcome: outcome(app.CauseDone)}, app.CauseDone, ""},
		{"the job exited otherwise than the task", ending{jobRecord: jobRecord{State: "FAILED", Code: 1}, outcome: outcome(app.CauseDone)}, app.CauseDone, ""},
		{"killed after its outcome", ending{jobRecord: jobRecord{State: "FAILED", Signal: 9}, outcome: outcome(app.CauseExit)}, app.CauseExit, ""},
		{"ended by another signal", ending{jobRecord: jobRecord{State: "FAILED", Signal: 15}}, lost, ""},
		{"exited with the number of the kill signal", ending{jobRecord: jobRecord{State: "FAILED", Code: 9}}, lost, ""},
		{"the node did not start", ending{jobRecord: jobRecord{State: "BOOT_FAIL", Node: "n1"}}, lost, "BOOT_FAIL"},
		{"cancelled by others", ending{jobRecord: jobRecord{State: "CANCELLED", By: "4294967294"}, outcome: outcome(app.CauseInterrupted)}, app.CauseStopped, "UID 4294967294"},
		{"cancelled as asked", ending{jobRecord: jobRecord{State: "CANCELLED"}, stopped: true, outcome: outcome(app.CauseDone)}, app.CauseStopped, "was stopped"},
		{"won the race against its cancellation", ending{jobRecord: jobRecord{State: "COMPLETED"}, stopped: true, outcome: outcome(app.CauseDone)}, app.CauseDone, ""},
		{"refused", ending{jobRecord: jobRecord{State: "CANCELLED"}, refused: "no node has that much"}, app.CauseCannotStart, "no node"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.tracked = &tracked{}
			s := tt.status()
			said := s.Reason
			cause := app.Cause(lost)
			if s.Outcome != nil {
				cause, said = s.Outcome.Cause, s.Outcome.Message
			}
			if cause != tt.want || (s.State == app.TaskLost) != (tt.want == lost) || !strings.Contains(said, tt.words) {
				t.Errorf("state %d, cause %q, %q; want %q with %q", s.State, cause, said, tt.want, tt.words)
			}
			if tt.outcome != nil && s.Outcome != nil && s.Outcome.CPUSeconds != 7 {
				t.Error("the measured usage is lost")
			}
		})
	}
}

// TestRowOfAWorkerThatRanOutOfMemory has Slurm end a worker for exceeding its memory: the
// running job fails with that cause, and the jobs that had not begun are lost with it.
func TestRowOfAWorkerThatRanOutOfMemory(t *testing.T) {
	end := time.Date(2026, 11, 20, 10, 41, 0, 0, time.UTC)
	process := app.TaskStatus{State: app.TaskEnded, Outcome: &app.Outcome{Cause: app.CauseMemory, Message: "It ran out.", EndedAt: end}}
	row := app.Task{Dir: t.TempDir(), Worker: t.TempDir()}
	s, err := new(Executor).statusInWorker(row, process)
	if err != nil || s.State != app.TaskLost || s.Reason != "It ran out" {
		t.Errorf("a row that had not begun: %+v, %v", s, err)
	}
	must.Write(t, filepath.Join(row.Dir, task.RunFile), `{"protocol":1,"startedAt":"2026-11-20T10:40:00Z"}`)
	s, err = new(Executor).statusInWorker(row, process)
	must.OK(t, err)
	if o := s.Outcome; s.State != app.TaskEnded || o.Cause != app.CauseMemory || o.Message != "It ran out." || o.EndedAt.Sub(o.StartedAt) != time.Minute {
		t.Errorf("the row that ran: %+v, %+v", s, o)
	}
}
