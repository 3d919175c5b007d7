package app

import (
	"encoding/json"
	"reflect"
	"testing"

	"molrun/app/algorithm"
	"molrun/app/test/must"
)

// TestRowsWaitForTheirCommitAsWhatDiffers fills rows as batches and pipelines do.
func TestRowsWaitForTheirCommitAsWhatDiffers(t *testing.T) {
	row := func(i int, typ string) *Job {
		j := &Job{
			ID: JobID("0" + string(rune('a'+i))), Name: "r" + string(rune('a'+i)), Type: typ, Status: Queued, Settings: json.RawMessage{'0' + byte(i)},
			Inputs: []Input{{Setting: "in", FileID: string(rune('a' + i))}}, Source: "s" + string(rune('a'+i)), Email: "ann@lab", Batch: "b", MaxRuntime: int64(60 + i), Executor: []string{"local", "slurm"}[i%2],
		}
		j.Private = Private{
			Meaning: "m" + string(rune('a'+i)), Normalized: json.RawMessage{'9', '0' + byte(i)}, Row: i, LimitOf: []string{"", "the partition p"}[i%2], Class: "c" + string(rune('a'+i)), Size: float64(i),
			Facts: algorithm.Facts{}, References: []Reference{{Setting: "in", Size: int64(i)}}, Waits: []Dependency{{Job: "0"}}[:i%2], Definition: "d", Batch: "00",
		}
		j.Private.Needs.CPUs = i
		return j
	}
	alike := []*Job{row(0, "echo"), row(1, "echo"), row(2, "echo")}
	mixed := []*Job{row(0, "echo"), row(1, "fold"), row(2, "fold"), row(3, "echo")}
	for name, tt := range map[string]struct {
		jobs []*Job
		like []int // the row that each is like
	}{
		"a batch":    {alike, []int{0, 0, 0}},
		"a pipeline": {mixed, []int{0, 1, 1, 3}},
		"no rows":    {},
	} {
		rows, err := newRows(tt.jobs)
		must.OK(t, err)
		for i, r := range rows {
			if got := r.job(); !reflect.DeepEqual(got, tt.jobs[i]) {
				t.Errorf("%s: row %d is %+v, want %+v", name, i, got, tt.jobs[i])
			}
			if r.like != tt.jobs[tt.like[i]] {
				t.Errorf("%s: row %d is not kept as like row %d", name, i, tt.like[i])
			}
			e, err := tt.jobs[i].Encoded()
			if err != nil || string(e.Shown) != string(r.shown) || string(e.Private) != string(r.private) {
				t.Errorf("%s: row %d is encoded as %s %s, %v", name, i, r.shown, r.private, err)
			}
		}
	}
}
