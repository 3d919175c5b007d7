package runner

import (
	"fmt"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

// TestNextStep covers all known states of a claimed job.
func TestNextStep(t *testing.T) {
	ended := func(c app.Cause) app.TaskStatus {
		return app.TaskStatus{State: app.TaskEnded, Outcome: &app.Outcome{Cause: c}}
	}
	starting, running := app.TaskStatus{State: app.TaskStarting}, app.TaskStatus{State: app.TaskRunning}
	lost := app.TaskStatus{State: app.TaskLost}
	// The expected steps: not begun, not begun and stopped, begun, begun and stopped.
	tests := []struct {
		name   string
		seen   bool
		status app.TaskStatus
		want   [4]step
	}{
		{"not seen", false, app.TaskStatus{}, [4]step{stepPrepare, stepLose, stepWatch, stepStop}},
		{"starting", true, starting, [4]step{stepWatch, stepStop, stepWatch, stepStop}},
		{"running", true, running, [4]step{stepWatch, stepStop, stepWatch, stepStop}},
		{"lost", true, lost, [4]step{stepPrepare, stepLose, stepLose, stepLose}},
		{"done", true, ended(app.CauseDone), [4]step{stepCollect, stepCollect, stepCollect, stepCollect}},
		{"exit", true, ended(app.CauseExit), [4]step{stepFail, stepFail, stepFail, stepFail}},
		{"signal", true, ended(app.CauseSignal), [4]step{stepFail, stepFail, stepFail, stepFail}},
		{"timeout", true, ended(app.CauseTimeout), [4]step{stepFail, stepFail, stepFail, stepFail}},
		{"limit", true, ended(app.CauseLimit), [4]step{stepFail, stepFail, stepFail, stepFail}},
		{"memory", true, ended(app.CauseMemory), [4]step{stepFail, stepFail, stepFail, stepFail}},
		{"stopped", true, ended(app.CauseStopped), [4]step{stepFail, stepFail, stepFail, stepFail}},
		{"cannot start", true, ended(app.CauseCannotStart), [4]step{stepFail, stepFail, stepFail, stepFail}},
		{"interrupted", true, ended(app.CauseInterrupted), [4]step{stepLose, stepLose, stepLose, stepLose}},
		{"no outcome", true, app.TaskStatus{State: app.TaskEnded}, [4]step{stepLose, stepLose, stepLose, stepLose}},
	}
	for _, tt := range tests {
		for i, want := range tt.want {
			s := situation{begun: i >= 2, stop: i%2 == 1, seen: tt.seen, status: tt.status}
			must.Equal(t, fmt.Sprintf("%s, begun %v, stop %v: step", tt.name, s.begun, s.stop), s.next(), want)
		}
	}
}
