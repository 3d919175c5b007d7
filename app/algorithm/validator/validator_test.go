package validator

import (
	"strings"
	"testing"
	"time"

	"molrun/app/fault"
	"molrun/app/strictjson"
)

func TestSlowValidatorIsStopped(t *testing.T) {
	p := Program{Type: "demo", Version: "1"}
	calls := p.calls([]Question{{Argv: []string{"/bin/sh", "-c", "sleep 600"}, Settings: &strictjson.Value{Kind: strictjson.Object}}})
	got, err := p.ask(t.Context(), calls[0], time.Millisecond)
	if got != nil || fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "took longer than 1ms") {
		t.Errorf("%v, error %v", got, err)
	}
}

func TestTimeLimitGrowsWithQuestions(t *testing.T) {
	for questions, want := range map[int]time.Duration{1: 5 * time.Second, 100: 5 * time.Second, 101: 10 * time.Second, 10000: time.Minute} {
		if got := (&call{questions: make([]int, questions)}).limit(); got != want {
			t.Errorf("%d questions: %v, want %v", questions, got, want)
		}
	}
}
