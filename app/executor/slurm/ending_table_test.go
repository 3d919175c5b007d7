package slurm

import (
	"strings"
	"testing"

	"molrun/app"
)

// TestEndOfATask is about what Slurm and the outcome say together.
func TestEndOfATask(t *testing.T) {
	outcome := func(c app.Cause) *app.Outcome { return &app.Outcome{Cause: c, CPUSeconds: 7} }
	const lost = "" // as a cause
	tests := []struct {
		name string
		ending
		want  app.Cause
		words string
	}{
		{"both say well", ending{record: record{state: "COMPLETED"}, outcome: outcome(app.CauseDone)}, app.CauseDone, ""},
		{"the outcome tells the failure", ending{record: record{state: "COMPLETED"}, outcome: outcome(app.CauseExit)}, app.CauseExit, ""},
		{"the machine went down in good order", ending{record: record{state: "COMPLETED"}, outcome: outcome(app.CauseInterrupted)}, app.CauseInterrupted, ""},
		{"nothing is left", ending{record: record{state: "COMPLETED", node: "n1"}}, lost, "on node n1"},
		{"its last words", ending{record: record{state: "FAILED", code: 1}, words: "the disk is full"}, lost, "the disk is full"},
		{"killed", ending{record: record{state: "FAILED", signal: 9}}, app.CauseSignal, "memory"},
		{"no folder", ending{record: record{state: "FAILED", code: 75, node: "n1"}}, lost, "n1 does not see"},
		{"requeued", ending{record: record{state: "FAILED", code: 76}}, lost, "requeued"},
		{"too much memory, and the program went on", ending{record: record{state: "OUT_OF_MEMORY"}, outcome: outcome(app.CauseDone)}, app.CauseMemory, "memory"},
		{"too much memory", ending{record: record{state: "OUT_OF_MEMORY"}}, app.CauseMemory, "memory"},
		{"Slurm's time limit", ending{record: record{state: "TIMEOUT"}, outcome: outcome(app.CauseInterrupted)}, app.CauseTimeout, ""},
		{"a deadline", ending{record: record{state: "DEADLINE"}}, app.CauseTimeout, ""},
		{"preempted", ending{record: record{state: "PREEMPTED"}, outcome: outcome(app.CauseInterrupted)}, lost, "higher priority"},
		{"the node failed", ending{record: record{state: "NODE_FAIL", node: "n1"}}, lost, "node n1 failed"},
		{"the node failed when all was done", ending{record: record{state: "NODE_FAIL"}, outcome: outcome(app.CauseDone)}, app.CauseDone, ""},
		{"the node did not start", ending{record: record{state: "BOOT_FAIL", node: "n1"}}, lost, "BOOT_FAIL"},
		{"cancelled by others", ending{record: record{state: "CANCELLED", by: "4294967294"}, outcome: outcome(app.CauseInterrupted)}, app.CauseStopped, "the number 4294967294"},
		{"cancelled as asked", ending{record: record{state: "CANCELLED"}, stopped: true, outcome: outcome(app.CauseDone)}, app.CauseStopped, "was stopped"},
		{"won the race against its cancellation", ending{record: record{state: "COMPLETED"}, stopped: true, outcome: outcome(app.CauseDone)}, app.CauseDone, ""},
		{"given up", ending{record: record{state: "CANCELLED"}, refused: "no node has that much"}, app.CauseCannotStart, "no node"},
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
				t.Error("what was measured is gone")
			}
		})
	}
}
