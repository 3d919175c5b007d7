package main

import (
	"math"
	"strings"
	"testing"
)

func outcomeOf(t *testing.T, all []outcome, what string) outcome {
	t.Helper()
	for _, o := range all {
		if strings.HasPrefix(o.what, what) {
			return o
		}
	}
	t.Fatalf("there is no goal %q", what)
	return outcome{}
}

func TestGoalsAreJudgedByTheMedianOfTheRatiosOfRounds(t *testing.T) {
	rounds := []figures{
		{"commit.rate": 1000, "submit.rate": 300, "submit.cpu": 80, "sync.p50": .1},
		{"commit.rate": 100, "submit.rate": 40, "submit.cpu": 100, "sync.p50": .1},
		{"commit.rate": 10, "submit.rate": 8, "submit.cpu": 500, "sync.p50": 2},
	}
	all := goals(rounds)
	for _, tt := range []struct {
		what    string
		median  float64
		verdict string
	}{
		{"durable submissions", .4, "met"},
		{"server CPU per durable submission", 100, "met"},
		{"database per job", math.NaN(), "-"},
	} {
		o := outcomeOf(t, all, tt.what)
		if m := o.median(); m != tt.median && !math.IsNaN(tt.median) || o.verdict() != tt.verdict {
			t.Errorf("%s: %v, %s; want %v, %s", tt.what, m, o.verdict(), tt.median, tt.verdict)
		}
	}
	for _, f := range rounds {
		f["sync.p50"] = 2
	}
	if o := outcomeOf(t, goals(rounds), "durable submissions"); o.want != .7 || o.verdict() != "missed" {
		t.Errorf("on a slow disk the goal is %v and %s; want 0.7, missed", o.want, o.verdict())
	}
}

func TestCursorIsFoundAtTheEndOfAPage(t *testing.T) {
	for page, want := range map[string]string{
		`{"jobs":[{"jobId":"a","settings":{"x":"],\"startKey\":\"no\""}}],"startKey":"abc-_"}` + "\n": "abc-_",
		`{"jobs":[{"jobId":"a"}]}` + "\n": "",
	} {
		if got, err := cursorOf([]byte(page)); got != want || err != nil {
			t.Errorf("%s: cursor %q, %v; want %q", page, got, err, want)
		}
	}
}
