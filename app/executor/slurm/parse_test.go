package slurm

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// As squeue and sacct of Slurm 22.05 printed them, but for the lines of other
// people and of states that are rare.
const (
	recordedQueue = `2|2|5|PENDING|0|0|1795259330|1795261680|1795261980||Resources|molrun-array-A|
3|2|1|RUNNING|0|0|1795259330|1795259331|1795259630|c1|None|molrun-array-A|
1|1|N/A|COMPLETED|768|0|1795259330|1795259330|1795259640|c1|NonZeroExitCode|molrun-TOKEN|
8|8|N/A|FAILED|9|1|1795259330|1795259330|1795259640|c2|None|molrun-KILLED|
9|9|[1,3-4%2]|PENDING|0|0|1795259330|N/A|N/A||ReqNodeNotAvail, UnavailableNodes:c1|molrun-array-B|
10|10|N/A|RUNNING|0|0|1795259330|1795259330|1795259640|c2|None|some|body's|
11|11|N/A|RUNNING|0|0|1795259330|1795259330|1795259640|c2|None|molrun|
a line
12|12|N/A|RUNNING

`
	recordedAccount = `1|1|FAILED|3:0|1795259330|1795259331|1795259640|c1|None|molrun-TOKEN
3|2_1|COMPLETED|0:0|1795259330|1795259331|1795259640|c1|None|molrun-array-A
2|2_[14-15,20]|CANCELLED by 1001|0:0|1795259330|None|1795259640|None assigned|None|molrun-array-A
4|4|CANCELLED+|0:15|1795259330|Unknown|Unknown|c1|None|molrun-CUT
5|5|COMPLETED|0:0|1795259330|1795259331|1795259640|c1|None|other
6|6_[1-9999999]|COMPLETED|0:0|1795259330|1795259331|1795259640|c1|None|molrun-array-HUGE
`
)

func at(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

func TestQueueIsRead(t *testing.T) {
	submitted := at(1795259330)
	want := []record{
		{row: row{"molrun-array-A", 5}, id: "2", array: "2", state: "PENDING", submitted: submitted, started: at(1795261680), ended: at(1795261980), reason: "Resources"},
		{row: row{"molrun-array-A", 1}, id: "3", array: "2", state: "RUNNING", submitted: submitted, started: at(1795259331), ended: at(1795259630), node: "c1", reason: "None"},
		{row: row{"molrun-TOKEN", 0}, id: "1", state: "COMPLETED", code: 3, submitted: submitted, started: submitted, ended: at(1795259640), node: "c1", reason: "NonZeroExitCode"},
		{row: row{"molrun-KILLED", 0}, id: "8", state: "FAILED", signal: 9, restarts: 1, submitted: submitted, started: submitted, ended: at(1795259640), node: "c2", reason: "None"},
	}
	for _, i := range []int{1, 3, 4} {
		want = append(want, record{row: row{"molrun-array-B", i}, id: "9", array: "9", state: "PENDING", submitted: submitted, reason: "ReqNodeNotAvail, UnavailableNodes:c1"})
	}
	if diff := cmp.Diff(want, parseQueue(recordedQueue, "molrun"), cmp.AllowUnexported(record{}), cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAccountIsRead(t *testing.T) {
	submitted, started, ended := at(1795259330), at(1795259331), at(1795259640)
	want := []record{
		{row: row{"molrun-TOKEN", 0}, id: "1", state: "FAILED", code: 3, submitted: submitted, started: started, ended: ended, node: "c1", reason: "None"},
		{row: row{"molrun-array-A", 1}, id: "3", array: "2", state: "COMPLETED", submitted: submitted, started: started, ended: ended, node: "c1", reason: "None"},
	}
	for _, i := range []int{14, 15, 20} {
		want = append(want, record{row: row{"molrun-array-A", i}, id: "2", array: "2", state: "CANCELLED", by: "1001", submitted: submitted, ended: ended, node: "None assigned", reason: "None"})
	}
	want = append(want, record{row: row{"molrun-CUT", 0}, id: "4", state: "CANCELLED", signal: 15, submitted: submitted, node: "c1", reason: "None"})
	if diff := cmp.Diff(want, parseAccount(recordedAccount, "molrun"), cmp.AllowUnexported(record{}), cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestArrayTasksAreRead(t *testing.T) {
	tests := map[string][]int{
		"3": {3}, "[3]": {3}, "[0-4%2]": {0, 1, 2, 3, 4}, "[1,3-9:3]": {1, 3, 6, 9}, "[7-7]": {7},
		"": nil, "[": nil, "[1-": nil, "[5-3]": nil, "[1-9:0]": nil, "[-1]": nil, "1-99999999": nil, "[1-2...]": nil, "x": nil,
	}
	for text, want := range tests {
		var got []int
		spans, err := parseTasks(text)
		for _, s := range spans {
			for i := s.first; i <= s.last && err == nil; i += s.step {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q is read as %v, %v; want %v", text, got, err, want)
		}
	}
}

// fuzzRecords checks what holds of every record that is read.
func fuzzRecords(t *testing.T, text string, records []record) {
	lines := strings.Count(text, "\n") + 1
	for _, r := range records {
		if !strings.HasPrefix(r.Name, "molrun-") || !isNumber(r.id) || r.Index < 0 || r.Index > largestIndex || strings.ContainsAny(r.state, " |") {
			t.Errorf("record %+v of %q", r, text)
		}
		if r.Index > 0 && r.target() != r.array+"_"+r.target()[len(r.array)+1:] {
			t.Errorf("the array's task is %s", r.target())
		}
	}
	if len(records) > lines && !strings.ContainsAny(text, "-,") {
		t.Errorf("%d records of %d lines", len(records), lines)
	}
}

func FuzzQueue(f *testing.F) {
	f.Add(recordedQueue)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 1<<10 && !strings.Contains(text, "000") { // long ranges take long
			fuzzRecords(t, text, parseQueue(text, "molrun"))
		}
	})
}

func FuzzAccount(f *testing.F) {
	f.Add(recordedAccount)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 1<<10 && !strings.Contains(text, "000") {
			fuzzRecords(t, text, parseAccount(text, "molrun"))
		}
	})
}

func FuzzQuote(f *testing.F) {
	f.Add(`it's "quoted" $(touch /tmp/x) \ ` + "`id`\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\x00") {
			t.Skip("no argument of a program holds it")
		}
		out, err := exec.Command("sh", "-c", "printf %s "+quote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q comes back as %q, %v", text, out, err)
		}
	})
}

func TestEveryStateHasAMeaning(t *testing.T) {
	for state, want := range map[string]kind{
		"PENDING": queued, "SPECIAL_EXIT": queued, "RUNNING": running, "SUSPENDED": running, "COMPLETING": closing,
		"COMPLETED": completed, "FAILED": exited, "TIMEOUT": timedOut, "DEADLINE": timedOut, "OUT_OF_MEMORY": outOfMemory,
		"CANCELLED": cancelled, "NODE_FAIL": broken, "PREEMPTED": broken, "BOOT_FAIL": broken, "OF_A_NEWER_SLURM": unknown,
	} {
		if got := states[state]; got != want || got.over() != (want >= completed) {
			t.Errorf("%s is kind %d, over: %v", state, got, got.over())
		}
	}
}

func TestRefusalsAreToldFromFailures(t *testing.T) {
	const failed = "sbatch: error: Batch job submission failed: "
	tests := map[string]struct{ refused, full bool }{
		"sbatch: error: invalid partition specified: nowhere\n" + failed + "Invalid partition name specified":                                                    {true, false},
		failed + "Requested node configuration is not available":                                                                                                 {true, false},
		failed + "Invalid account or account/partition combination specified":                                                                                    {true, false},
		"sbatch: unrecognized option '--nonsense'":                                                                                                               {true, false},
		"sbatch: error: QOSMaxSubmitJobPerUserLimit\n" + failed + "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)":        {true, true},
		failed + "Unable to contact slurm controller (connect failure)":                                                                                          {false, false},
		failed + "Socket timed out on send/recv operation":                                                                                                       {false, false},
		"sbatch: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\": No such file or directory\n" + failed + "Invalid authentication...": {false, false},
		failed + "Zero Bytes were transmitted or received":                                                                                                       {false, false},
		"sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying":                                                                           {false, false},
		"": {false, false},
	}
	for said, want := range tests {
		if refused(said) != want.refused || full(said) != want.full {
			t.Errorf("refused %v, full %v, want %+v: %s", refused(said), full(said), want, said)
		}
	}
}
