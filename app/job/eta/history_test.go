package eta

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func runs(of ...float64) (all []Run) {
	for i := 0; i < len(of); i += 2 {
		all = append(all, Run{Size: of[i], Seconds: of[i+1]})
	}
	return all
}

func TestEstimate(t *testing.T) {
	for _, tt := range []struct {
		name    string
		runs    []Run
		size    float64
		seconds float64 // 0 means unknown
		n       int
	}{
		{"nothing", nil, 5, 0, 0},
		{"too few", runs(0, 10, 0, 20), 0, 0, 0},
		{"without sizes", runs(0, 10, 0, 20, 0, 90), 0, 20, 3},
		{"in any order", runs(0, 90, 0, 10, 0, 20), 0, 20, 3},
		{"just apart", runs(100, 10, 120, 10, 100, 10, 120, 10), 1000, 10, 4},
		{"even number", runs(0, 10, 0, 20, 0, 40, 0, 90), 0, 30, 4},
		{"one size", runs(100, 10, 100, 20, 100, 30), 100, 20, 3},
		{"one size, in proportion", runs(100, 10, 100, 20, 100, 30), 300, 60, 3},
		{"in proportion", runs(100, 10, 200, 20, 400, 40), 1000, 100, 3},
		{"square", runs(1, 1, 2, 4, 4, 16, 8, 64), 16, 256, 4},
		{"hardly at all", runs(1, 5, 2, 5, 4, 5), 100, 5, 3},
		{"an outlier", runs(1, 1, 2, 2, 4, 4, 8, 8, 16, 1600), 32, 32, 5},
		{"faster if larger is chance", runs(1, 8, 2, 4, 4, 2), 4, 4, 3},
		{"unknown size among known", runs(100, 10, 100, 20, 100, 30), 0, 0, 0},
		{"known size among unknown", runs(0, 10, 0, 20, 0, 30), 100, 0, 0},
	} {
		e := NewHistory("a 1 local", tt.runs).Estimate(tt.size)
		if e.Known() != (tt.seconds > 0) || e.Runs() != tt.n {
			t.Errorf("%s: known %v of %d runs, want %d", tt.name, e.Known(), e.Runs(), tt.n)
			continue
		}
		if e.Known() && math.Abs(e.Seconds()-tt.seconds) > 1e-6*tt.seconds {
			t.Errorf("%s: %v s, want %v", tt.name, e.Seconds(), tt.seconds)
		}
	}
	var none *History
	if none.Estimate(1).Known() || (Estimate{}).Basis("a", "1") != "" {
		t.Error("no history gives an estimate")
	}
}

// The declared run time is used until enough jobs have run.
func TestExpectedTimeOfAClass(t *testing.T) {
	for _, seconds := range []float64{0.05, 20, 1e6, 86400.5} {
		class := Class{Type: "a~b", Version: "1", Executor: "slurm", Where: []string{"gpu"}, GPUs: 1, Formula: "settings.n", Declared: Declared{Seconds: seconds}}.Name()
		e := NewHistory(class, runs(100, 7, 100, 8)).Estimate(100)
		if !e.Known() || e.Seconds() != seconds || e.Runs() != 0 || e.Basis("a~b", "1") != "the algorithm file of a~b 1" {
			t.Errorf("%s: %+v", class, e)
		}
		if _, known := e.Left(1); known {
			t.Errorf("%s: it is known how long a job still runs", class)
		}
		if e := NewHistory(class, runs(100, 7, 100, 8, 100, 9)).Estimate(100); e.Seconds() != 8 || e.Runs() != 3 || e.Basis("a", "1") != "3 runs of a 1" {
			t.Errorf("%s after three runs: %+v", class, e)
		}
	}
	class := Class{Type: "a", Version: "1", Executor: "local", Formula: "settings.n", Declared: Declared{PerSize: 2.5e-7}}.Name()
	if e := NewHistory(class, runs(4e9, 7, 4e9, 8)).Estimate(4e9); e.Seconds() != 1000 || e.Runs() != 0 || e.Basis("a", "1") != "the algorithm file of a 1" {
		t.Errorf("%s: %+v", class, e)
	}
	if e := NewHistory(class, runs(4e9, 7, 4e9, 8, 4e9, 9)).Estimate(4e9); e.Seconds() != 8 || e.Runs() != 3 {
		t.Errorf("%s after three runs: %+v", class, e)
	}
	if e := NewHistory(class, nil).Estimate(0); e.Known() {
		t.Errorf("%s: a run of unknown size: %+v", class, e)
	}
	for _, class := range []string{"", "a 1 local", "a 1 local ~x/size", "a~20 1 local", Class{Type: "a", Version: "1", Executor: "local", Formula: "1"}.Name()} {
		if e := NewHistory(class, nil).Estimate(1); e.Known() {
			t.Errorf("%q: %+v", class, e)
		}
	}
}

// The scaling is estimated from runs of similar size, so the estimate is good even if the
// scaling varies with size.
func TestEstimateFollowsAFixedCostOfSmallRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	law := func(size float64) float64 { return 5 + size/1000 }
	var past []Run
	for range MaxRuns {
		size := math.Exp(r.Float64()*math.Log(1e3)) * 100
		past = append(past, Run{size, law(size) * math.Exp(r.NormFloat64()*0.1)})
	}
	h := NewHistory("a 1 local", past)
	for _, size := range []float64{100, 1e3, 3e4, 1e5} {
		if got, want := h.Estimate(size).Seconds(), law(size); math.Abs(got/want-1) > 0.35 {
			t.Errorf("size %v: %.1f s, want about %.1f", size, got, want)
		}
	}
}

// After a few runs, the estimate reflects that the machine has become slower.
func TestEstimateFollowsTheMachine(t *testing.T) {
	var past []Run
	for i := range MaxRuns {
		size := float64(100 * (1 + i%7))
		run := Run{size, size}
		if i >= MaxRuns-recent {
			run.Seconds *= 3
		}
		past = append(past, run)
	}
	if got := NewHistory("a 1 local", past).Estimate(400).Seconds(); math.Abs(got-1200) > 120 {
		t.Errorf("%.0f s, want 1200", got)
	}
}

func TestLeftIsThatOfRunsThatTookLonger(t *testing.T) {
	e := NewHistory("a 1 local", runs(0, 10, 0, 20, 0, 30, 0, 40, 0, 50)).Estimate(0)
	for elapsed, want := range map[float64]float64{0: 30, 5: 25, 15: 20, 25: 15, 30: 10} {
		if got, known := e.Left(elapsed); !known || got != want {
			t.Errorf("after %v s: %v %v, want %v", elapsed, got, known, want)
		}
	}
	if got, known := e.Left(31); known {
		t.Errorf("of two runs that took longer: %v", got)
	}
}

func TestLeftByProgress(t *testing.T) {
	at := func(seconds int, fraction float64) Point { return Point{time.Unix(int64(1000+seconds), 0), fraction} }
	for _, tt := range []struct {
		name     string
		from, to Point
		now      int
		left     float64
		known    bool
	}{
		{"half", at(0, 0), at(10, 0.5), 10, 10, true},
		{"some time ago", at(0, 0), at(10, 0.5), 14, 6, true},
		{"resumed", at(0, 0.8), at(10, 0.9), 10, 10, true},
		{"too little", at(0, 0), at(10, 0.01), 10, 0, false},
		{"too early", at(0, 0), Point{time.Unix(1000, 9e8), 0.5}, 10, 0, false},
		{"none", at(0, 0), Point{}, 10, 0, false},
		{"overdue", at(0, 0), at(10, 0.5), 21, 0, false},
		{"done", at(0, 0), at(10, 1), 21, 0, true},
		{"backwards", at(0, 0.5), at(10, 0.4), 10, 0, false},
	} {
		left, known := LeftBy(tt.from, tt.to, at(tt.now, 0).At)
		if known != tt.known || known && math.Abs(left-tt.left) > 1e-9 {
			t.Errorf("%s: %v %v, want %v %v", tt.name, left, known, tt.left, tt.known)
		}
	}
}

func TestClassSeparatesWhatIsNotComparable(t *testing.T) {
	base := Class{Type: "vina", Version: "1", Executor: "slurm", Where: []string{"main", ""}, Formula: "settings.n"}
	if got, want := base.Name(), "vina 1 slurm/main 0d0b9e1e"; got[:18] != want[:18] {
		t.Errorf("name %q", got)
	}
	seen := map[string]bool{base.Name(): true}
	for i, change := range []func(*Class){
		func(c *Class) { c.Type = "other" },
		func(c *Class) { c.Version = "2" },
		func(c *Class) { c.Executor = "local" },
		func(c *Class) { c.Where = []string{"gpu", ""} },
		func(c *Class) { c.Where = []string{"main", "a100"} },
		func(c *Class) { c.GPUs = 1 },
		func(c *Class) { c.Formula = "settings.m" },
		func(c *Class) { c.Formula = "" },
	} {
		c := base
		change(&c)
		if seen[c.Name()] {
			t.Errorf("change %d: %q is the same class", i, c.Name())
		}
		seen[c.Name()] = true
	}
}
