package main

import (
	"math"
	"strings"
	"testing"
)

func goalNamed(t *testing.T, all []judged, what string) judged {
	t.Helper()
	for _, j := range all {
		if strings.HasPrefix(j.what, what) {
			return j
		}
	}
	t.Fatalf("there is no goal %q", what)
	return judged{}
}

func TestVerdictRestsOnTheMedianOfTheRoundsRatios(t *testing.T) {
	rounds := []figures{
		{"commit.rate": 1000, "submit.rate": 300, "submit.cpu": 80, "sync.p50": .1},
		{"commit.rate": 100, "submit.rate": 40, "submit.cpu": 100, "sync.p50": .1},
		{"commit.rate": 10, "submit.rate": 8, "submit.cpu": 500, "sync.p50": 2},
	}
	all := judge(rounds)
	for _, tt := range []struct {
		what    string
		median  float64
		verdict string
	}{
		{"durable submissions", .4, "met"},
		{"server CPU per durable submission", 100, "met"},
		{"database per job", math.NaN(), "-"},
	} {
		j := goalNamed(t, all, tt.what)
		if m := j.median(); m != tt.median && !math.IsNaN(tt.median) || j.verdict() != tt.verdict {
			t.Errorf("%s: %v, %s; want %v, %s", tt.what, m, j.verdict(), tt.median, tt.verdict)
		}
	}
	for _, f := range rounds {
		f["sync.p50"] = 2
	}
	if j := goalNamed(t, judge(rounds), "durable submissions"); j.want != .7 || j.verdict() != "missed" {
		t.Errorf("on a slow disk the goal is %v and %s; want 0.7, missed", j.want, j.verdict())
	}
}
