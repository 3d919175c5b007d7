package slurm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/test/must"
)

// clientWithScript returns a client with a script in place of one command. The script
// appends a line to the file calls for each call.
func clientWithScript(t *testing.T, command, script string) (c *client, calls string) {
	t.Helper()
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	text := fmt.Sprintf("#!/bin/sh\necho >> '%s'\n%s\n", calls, script)
	must.Program(t, filepath.Join(dir, command), text)
	return newClient(Options{Path: dir + ":/usr/bin:/bin", Timeout: time.Minute, Now: time.Now}), calls
}

func TestSubmissionNeedsTheNumberOfAJob(t *testing.T) {
	for printed, want := range map[string]string{"4711": "4711", "4711;cluster": "4711", "": "", "submitted": "", "-1": ""} {
		c, _ := clientWithScript(t, "sbatch", "echo '"+printed+"'")
		if id, err := c.Submit(t.Context(), "#!/bin/sh\n"); id != want || (err == nil) != (want != "") {
			t.Errorf("sbatch prints %q: %q, %v; want %q", printed, id, err, want)
		}
	}
}

func TestSubmissionOfATaskIsItsArray(t *testing.T) {
	for want, r := range map[string]jobRecord{
		"5": {ID: "5"},
		"7": {ID: "9", Array: "7", TaskID: TaskID{Index: 1}},
	} {
		must.Equal(t, fmt.Sprintf("%+v", r), r.Submission(), want)
	}
}

func TestFailureTellsTheLastLine(t *testing.T) {
	for said, want := range map[string]string{
		"": "", "one": "one", "one\ntwo\n": "two", "sbatch: error: Batch job submission failed: Invalid qos": "Batch job submission failed: Invalid qos",
		"sbatch: error: first\nsbatch: error: second\n\n": "second",
	} {
		must.Equal(t, fmt.Sprintf("%q", said), lastLine(said), want)
	}
}

// TestSettingsAreAskedForOnce counts the calls of scontrol: both its output and its
// failure are cached.
func TestSettingsAreAskedForOnce(t *testing.T) {
	for script, fails := range map[string]bool{"echo 'MaxArraySize = 11'": false, "exit 1": true} {
		c, calls := clientWithScript(t, "scontrol", script)
		asked := func(want int) {
			t.Helper()
			text, err := os.ReadFile(calls)
			if n := strings.Count(string(text), "\n"); err != nil || n != want {
				t.Errorf("%s: %d calls, %v; want %d", script, n, err, want)
			}
		}
		for range 3 {
			settings, err := c.Settings(t.Context())
			if fails != (err != nil) || !fails && settings["MaxArraySize"] != "11" {
				t.Errorf("%s: %v, %v", script, settings, err)
			}
		}
		asked(1)
		for ttl, want := range map[time.Duration]bool{settingsFailureTTL: fails, settingsTTL: true} {
			before, _ := os.ReadFile(calls)
			c.settings.asked = time.Now().Add(-ttl - time.Second)
			c.Settings(t.Context())
			after, _ := os.ReadFile(calls)
			must.Equal(t, fmt.Sprintf("%s: asked again after %v", script, ttl), len(after) > len(before), want)
		}
		c.ForgetSettings()
		before, _ := os.ReadFile(calls)
		c.Settings(t.Context())
		asked(strings.Count(string(before), "\n") + 1)
	}
}

func TestTasksOfAnArrayAreReadUpToTheirBound(t *testing.T) {
	for text, fits := range map[string]bool{
		fmt.Sprintf("1-%d", largestArrayIndex): true, fmt.Sprintf("1-%d,1", largestArrayIndex): false, fmt.Sprintf("0-%d", largestArrayIndex): false,
	} {
		if _, err := parseTasks(text); fits != (err == nil) {
			t.Errorf("%s: error %v, want one: %v", text, err, !fits)
		}
	}
}

func TestLimitsOfPartitionsAreReadInSeconds(t *testing.T) {
	for text, want := range map[string]int64{
		"30:00": 1800, "2:30:00": 9000, "7-00:00:00": 7 * 86400, "1-02:03:04": 93784, "0:01": 1,
		fmt.Sprintf("%d:00", longestDays): longestDays * 60, fmt.Sprintf("%d-00:00", longestDays): longestDays * 86400,
		fmt.Sprintf("%d:00", longestDays+1): 0, fmt.Sprintf("%d-00:00", longestDays+1): 0,
		"infinite": 0, "": 0, "30": 0, "1:2:3:4": 0, "-1:00": 0, "1:-1": 0, "x-1:00": 0,
	} {
		must.Equal(t, fmt.Sprintf("%q", text), parseTimeLimit(text), want)
	}
}

func TestCommandsAreToldWithTheirTimes(t *testing.T) {
	for script, fails := range map[string]bool{"sleep 0.1; echo 4711": false, "sleep 0.1; exit 1": true} {
		c, _ := clientWithScript(t, "sbatch", script)
		var told []string
		c.options.Ran = func(command string, took time.Duration, err error) {
			told = append(told, fmt.Sprint(command, took >= 100*time.Millisecond, err != nil))
		}
		_, _ = c.Submit(t.Context(), "#!/bin/sh\n")
		if want := fmt.Sprint("sbatch", true, fails); len(told) != 1 || told[0] != want {
			t.Errorf("%s: told %q, want %q", script, told, want)
		}
	}
	c, _ := clientWithScript(t, "sbatch", "sleep 60")
	c.options.Ran = func(command string, _ time.Duration, err error) {
		t.Errorf("reported %s that was canceled: %v", command, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	stopped, stop := context.WithCancel(context.Background())
	context.AfterFunc(ctx, stop)
	_, _ = c.Submit(stopped, "#!/bin/sh\n")
}
