package app

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"molrun/app/test/must"
)

// TestRowsWaitForTheirCommitAsTheirBytes compares the rows that are stored with those that
// were submitted.
func TestRowsWaitForTheirCommitAsTheirBytes(t *testing.T) {
	var jobs []*Job
	for i := range 3 {
		j := &Job{
			ID: JobID("0" + string(rune('a'+i))), Name: "r" + string(rune('a'+i)), Type: "echo", Status: Queued, Settings: json.RawMessage{'0' + byte(i)},
			Inputs: []Input{{Setting: "in", FileID: string(rune('a' + i))}}, Source: "s", Email: "ann@lab", Batch: "b", MaxRuntime: int64(60 + i), Executor: "local",
		}
		j.Private = Private{
			Meaning: "m", Normalized: json.RawMessage{'9', '0' + byte(i)}, Row: i, LimitOf: "the partition p", Class: "c", Size: float64(i),
			References: []Reference{{Setting: "in", Size: int64(i)}}, Waits: []Dependency{{Job: "0"}}, Definition: "d", Batch: "00",
		}
		j.Private.Needs.CPUs = i
		jobs = append(jobs, j)
	}
	rows, err := newRows(jobs)
	must.OK(t, err)
	for i, r := range rows {
		got, err := r.encoded()
		must.OK(t, err)
		want, err := jobs[i].encoded(false)
		must.OK(t, err)
		if !reflect.DeepEqual(got, want) || r.id != jobs[i].ID || !slices.Equal(r.waits, jobs[i].Private.Waits) {
			t.Errorf("row %d is %+v, want %+v", i, got.Job, jobs[i])
		}
	}
}
