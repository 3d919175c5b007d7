package slurm

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestScancels builds the scancel calls for a queue of single jobs and arrays.
func TestScancels(t *testing.T) {
	job := func(name, id, state string) jobRecord {
		return jobRecord{Title: name, TaskID: TaskID{Name: name}, ID: id, State: state}
	}
	task := func(name, array string, index int, state string) jobRecord {
		return jobRecord{Title: name, TaskID: TaskID{Name: name, Index: index}, ID: "90", Array: array, State: state}
	}
	queue := []jobRecord{
		job("a", "1", "RUNNING"), job("b", "2", "PENDING"), job("gone", "3", "COMPLETED"), job("other", "4", "RUNNING"),
		task("many", "5", 1, "RUNNING"), task("many", "5", 2, "PENDING"), task("many", "5", 3, "PENDING"),
		task("again", "6", 1, "PENDING"), task("again", "6", 2, "PENDING"), task("again", "7", 1, "PENDING"),
	}
	tests := []struct {
		name   string
		how    cancelManner
		wanted []jobRecord
		want   []scancel
	}{
		{"nothing", cancelEnd, nil, nil},
		{"single jobs", cancelEnd, []jobRecord{job("a", "1", "RUNNING"), job("b", "2", "PENDING")}, []scancel{
			{cancelEnd, "a", []string{"1"}}, {cancelEnd, "b", []string{"2"}},
		}},
		{"a number that is somebody else's now", cancelEnd, []jobRecord{job("a", "4", "RUNNING")}, nil},
		{"one that is over", cancelEnd, []jobRecord{job("gone", "3", "RUNNING")}, nil},
		{"a task that runs", cancelTerminate, []jobRecord{task("many", "5", 1, "RUNNING")}, []scancel{{cancelTerminate, "many", []string{"5_1"}}}},
		{"a task that ran and waits again", cancelTerminate, []jobRecord{task("many", "5", 2, "RUNNING")}, nil},
		{"one of the waiting tasks", cancelEnd, []jobRecord{task("many", "5", 2, "PENDING")}, []scancel{{cancelEnd, "", []string{"5_2"}}}},
		{"a whole array", cancelEnd, []jobRecord{task("many", "5", 1, "RUNNING"), task("many", "5", 2, "PENDING"), task("many", "5", 3, "PENDING")}, []scancel{
			{cancelIfQueued, "many", []string{"5"}}, {cancelEnd, "many", []string{"5_1"}},
		}},
		{"superfluous jobs", cancelIfQueued, []jobRecord{job("b", "2", "PENDING"), task("again", "6", 1, "PENDING")}, []scancel{
			{cancelIfQueued, "again", []string{"6"}}, {cancelIfQueued, "b", []string{"2"}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := scancels(queue, tt.wanted, tt.how)
			slices.SortStableFunc(got, func(a, b scancel) int {
				return cmp.Or(cmp.Compare(a.how, b.how), cmp.Compare(a.name, b.name))
			})
			if diff := gocmp.Diff(tt.want, got, gocmp.AllowUnexported(scancel{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
