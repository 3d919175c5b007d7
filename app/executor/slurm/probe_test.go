package slurm

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// TestClocksOfNodesMayDifferALittle has nodes that read their clocks when the probe was
// sent, and answers that arrive two seconds later.
func TestClocksOfNodesMayDifferALittle(t *testing.T) {
	sent := time.Date(2026, 11, 20, 10, 40, 0, 0, time.UTC)
	seen := sent.Add(2 * time.Second)
	for there, want := range map[time.Time]Grade{
		sent:                        Fine,
		seen.Add(clockSlack):        Fine,
		seen.Add(clockSlack + 1e9):  Doubtful,
		sent.Add(-clockSlack):       Fine,
		sent.Add(-clockSlack - 1e9): Doubtful,
	} {
		for status, want := range map[string]Grade{"0": want, "126": Wrong} {
			p := &probe{checkup: &checkup{}, nonce: "N", sent: sent}
			p.checkAnswer(fmt.Sprintf("N\n%d\nnode1\n%d\n%s\n", there.Unix(), os.Geteuid(), status), seen)
			worst := Fine
			for _, f := range p.found {
				worst = max(worst, f.Grade)
			}
			if worst != want {
				t.Errorf("at %v, exit status %s: %+v", there, status, p.found)
			}
		}
	}
}
