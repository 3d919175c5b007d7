package slurm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app/test/must"
)

// Output of squeue and sacct of Slurm 22.05, with made-up lines for other users and rare
// states.
const (
	recordedQueue = `2|2|5|PENDING|0|0|1795259330|1795261680|1795261980||Resources|main|molrun-array-A|
3|2|1|RUNNING|0|0|1795259330|1795259331|1795259630|c1|None|main|molrun-array-A|
1|1|N/A|COMPLETED|768|0|1795259330|1795259330|1795259640|c1|NonZeroExitCode|main|molrun-TOKEN|
8|8|N/A|FAILED|9|1|1795259330|1795259330|1795259640|c2|None|main|molrun-KILLED|
9|9|[1,3-4%2]|PENDING|0|0|1795259330|N/A|N/A||ReqNodeNotAvail, UnavailableNodes:c1|main|molrun-array-B|
10|10|N/A|RUNNING|0|0|1795259330|1795259330|1795259640|c2|None|main|some|body's|
11|11|N/A|RUNNING|0|0|1795259330|1795259330|1795259640|c2|None|main|molrun|
a line
12|12|N/A|RUNNING

`
	recordedAccount = `1|1|FAILED|3:0|1795259330|1795259331|1795259640|c1|None|main|molrun-TOKEN
3|2_1|COMPLETED|0:0|1795259330|1795259331|1795259640|c1|None|main|molrun-array-A
2|2_[14-15,20]|CANCELLED by 1001|0:0|1795259330|None|1795259640|None assigned|None|main|molrun-array-A
4|4|CANCELLED+|0:15|1795259330|Unknown|Unknown|c1|None|main|molrun-CUT
5|5|COMPLETED|0:0|1795259330|1795259331|1795259640|c1|None|main|other
6|6_[1-9999999]|COMPLETED|0:0|1795259330|1795259331|1795259640|c1|None|main|molrun-array-HUGE
`
)

func unixTime(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

func TestParseQueue(t *testing.T) {
	submitted := unixTime(1795259330)
	want := []jobRecord{
		{Title: "molrun-array-A", TaskID: TaskID{"molrun-array-A", 5}, ID: "2", Array: "2", State: "PENDING", Submitted: submitted, Started: unixTime(1795261680), Ended: unixTime(1795261980), Reason: "Resources", Partition: "main"},
		{Title: "molrun-array-A", TaskID: TaskID{"molrun-array-A", 1}, ID: "3", Array: "2", State: "RUNNING", Submitted: submitted, Started: unixTime(1795259331), Ended: unixTime(1795259630), Node: "c1", Reason: "None", Partition: "main"},
		{Title: "molrun-TOKEN", TaskID: TaskID{"molrun-TOKEN", 0}, ID: "1", State: "COMPLETED", Code: 3, Submitted: submitted, Started: submitted, Ended: unixTime(1795259640), Node: "c1", Reason: "NonZeroExitCode", Partition: "main"},
		{Title: "molrun-KILLED", TaskID: TaskID{"molrun-KILLED", 0}, ID: "8", State: "FAILED", Signal: 9, Restarts: 1, Submitted: submitted, Started: submitted, Ended: unixTime(1795259640), Node: "c2", Reason: "None", Partition: "main"},
	}
	for _, i := range []int{1, 3, 4} {
		want = append(want, jobRecord{Title: "molrun-array-B", TaskID: TaskID{"molrun-array-B", i}, ID: "9", Array: "9", State: "PENDING", Submitted: submitted, Reason: "ReqNodeNotAvail, UnavailableNodes:c1", Partition: "main"})
	}
	must.Equal(t, "the queue", parseQueue(recordedQueue, "molrun"), want)
}

func TestParseAccount(t *testing.T) {
	submitted, started, ended := unixTime(1795259330), unixTime(1795259331), unixTime(1795259640)
	want := []jobRecord{
		{Title: "molrun-TOKEN", TaskID: TaskID{"molrun-TOKEN", 0}, ID: "1", State: "FAILED", Code: 3, Submitted: submitted, Started: started, Ended: ended, Node: "c1", Reason: "None", Partition: "main"},
		{Title: "molrun-array-A", TaskID: TaskID{"molrun-array-A", 1}, ID: "3", Array: "2", State: "COMPLETED", Submitted: submitted, Started: started, Ended: ended, Node: "c1", Reason: "None", Partition: "main"},
	}
	for _, i := range []int{14, 15, 20} {
		want = append(want, jobRecord{Title: "molrun-array-A", TaskID: TaskID{"molrun-array-A", i}, ID: "2", Array: "2", State: "CANCELLED", By: "1001", Submitted: submitted, Ended: ended, Reason: "None", Partition: "main"})
	}
	want = append(want, jobRecord{Title: "molrun-CUT", TaskID: TaskID{"molrun-CUT", 0}, ID: "4", State: "CANCELLED", Signal: 15, Submitted: submitted, Node: "c1", Reason: "None", Partition: "main"})
	must.Equal(t, "the accounting", parseAccount(recordedAccount, "molrun"), want)
}

func TestParseTasks(t *testing.T) {
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

// fuzzRecords checks the invariants of parsed records.
func fuzzRecords(t *testing.T, text string, records []jobRecord) {
	lines := strings.Count(text, "\n") + 1
	for _, r := range records {
		if !strings.HasPrefix(r.Name, "molrun-") || !isNumber(r.ID) || r.Index < 0 || r.Index > largestArrayIndex || strings.ContainsAny(r.State, " |") {
			t.Errorf("record %+v of %q", r, text)
		}
		if r.Index > 0 && r.Target() != r.Array+"_"+r.Target()[len(r.Array)+1:] {
			t.Errorf("the array's task is %s", r.Target())
		}
	}
	if len(records) > lines && !strings.ContainsAny(text, "-,") {
		t.Errorf("%d records of %d lines", len(records), lines)
	}
}

func FuzzQueue(f *testing.F) {
	f.Add(recordedQueue)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 1<<10 && !strings.Contains(text, "000") { // long ranges are slow
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

func TestEveryStateHasAMeaning(t *testing.T) {
	for state, want := range map[string]stateKind{
		"PENDING": kindQueued, "SPECIAL_EXIT": kindQueued, "RUNNING": kindRunning, "SUSPENDED": kindRunning, "COMPLETING": kindClosing,
		"COMPLETED": kindCompleted, "FAILED": kindExited, "TIMEOUT": kindTimedOut, "DEADLINE": kindTimedOut, "OUT_OF_MEMORY": kindOutOfMemory,
		"CANCELLED": kindCancelled, "NODE_FAIL": kindBroken, "PREEMPTED": kindBroken, "BOOT_FAIL": kindBroken, "OF_A_NEWER_SLURM": kindUnknown,
	} {
		if got := stateKinds[state]; got != want || got.Over() != (want >= kindCompleted) {
			t.Errorf("%s is kind %d, over: %v", state, got, got.Over())
		}
	}
}
