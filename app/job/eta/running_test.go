package eta

import (
	"testing"
	"time"
)

func TestRunningJobsEndByTheirProgressElseAsPastRuns(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	past := NewHistory("", runs(0, 20, 0, 20, 0, 20)).Estimate(0)
	for _, tt := range []struct {
		name  string
		do    func(r *Running)
		left  float64
		basis string
		runs  bool
	}{
		{"not begun", func(*Running) {}, 0, "", false},
		{"as past runs", func(r *Running) { r.Begin("a", at(0), 1, past, "3 runs") }, 10, "3 runs", true},
		{"longer than all", func(r *Running) { r.Begin("a", at(-30), 1, past, "3 runs") }, 0, "", true},
		{"no past runs", func(r *Running) { r.Begin("a", at(0), 1, Estimate{}, "") }, 0, "", true},
		{"by progress since its start", func(r *Running) {
			r.Begin("a", at(0), 1, past, "3 runs")
			r.Progressed("a", at(10), 0.2)
		}, 40, ByProgress, true},
		{"a second attempt may resume", func(r *Running) {
			r.Begin("a", at(0), 2, past, "3 runs")
			r.Progressed("a", at(5), 0.8)
			r.Progressed("a", at(10), 0.9)
		}, 5, ByProgress, true},
		{"progress that starts again", func(r *Running) {
			r.Begin("a", at(-100), 2, past, "3 runs")
			r.Progressed("a", at(-50), 0.9)
			r.Progressed("a", at(0), 0.5)
			r.Progressed("a", at(10), 0.75)
		}, 10, ByProgress, true},
		{"progress of one that does not run", func(r *Running) { r.Progressed("a", at(10), 0.2) }, 0, "", false},
		{"another one", func(r *Running) { r.Begin("b", at(0), 1, past, "3 runs") }, 0, "", false},
		{"ended", func(r *Running) {
			r.Begin("a", at(0), 1, past, "3 runs")
			r.End("a")
		}, 0, "", false},
	} {
		var r Running
		tt.do(&r)
		left, basis, runs := r.Left("a", at(10))
		if diff := left - tt.left; diff > 1e-9 || diff < -1e-9 || basis != tt.basis || runs != tt.runs {
			t.Errorf("%s: %v %q %v, want %v %q %v", tt.name, left, basis, runs, tt.left, tt.basis, tt.runs)
		}
	}
}
