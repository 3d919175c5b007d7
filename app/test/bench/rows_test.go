package main

import (
	"maps"
	"testing"
	"time"
)

func TestPeaksOfMemoryAreOfTheirPhases(t *testing.T) {
	answered := time.Now()
	at := func(seconds, mib float64) memory {
		return memory{answered.Add(time.Duration(seconds * float64(time.Second))), mib}
	}
	f := figures{}
	f.addMemory([]memory{at(-2, 20), at(-1, 90), at(0, 120), at(29.9, 60), at(30, 50), at(70, 55), at(80, 40)}, answered)
	if want := (figures{"memory.submission": 90, "memory.after": 120, "memory.later": 55}); !maps.Equal(f, want) {
		t.Errorf("got %v, want %v", f, want)
	}
	f = figures{}
	f.addMemory([]memory{at(-1, 20), at(1, 30)}, answered)
	if _, found := f["memory.later"]; found {
		t.Errorf("a batch that ended within seconds has a later peak: %v", f)
	}
}
