package nearest

import (
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"jobName", "type", "settings", "version"}
	for name, want := range map[string]string{"jobname": "jobName", "setings": "settings", "typ": "type", "quantum": ""} {
		if got := Of(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
