package slurm

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"molrun/app/executor/slurm/client"
)

// TestScancels builds the calls of scancel for a queue of single jobs and of arrays.
func TestScancels(t *testing.T) {
	job := func(name, id, state string) client.Record {
		return client.Record{Row: client.Row{Name: name}, ID: id, State: state}
	}
	task := func(name, array string, index int, state string) client.Record {
		return client.Record{Row: client.Row{Name: name, Index: index}, ID: "90", Array: array, State: state}
	}
	queue := []client.Record{
		job("a", "1", "RUNNING"), job("b", "2", "PENDING"), job("gone", "3", "COMPLETED"), job("other", "4", "RUNNING"),
		task("many", "5", 1, "RUNNING"), task("many", "5", 2, "PENDING"), task("many", "5", 3, "PENDING"),
		task("again", "6", 1, "PENDING"), task("again", "6", 2, "PENDING"), task("again", "7", 1, "PENDING"),
	}
	tests := []struct {
		name   string
		how    client.Manner
		wanted []client.Record
		want   []scancel
	}{
		{"nothing", client.End, nil, nil},
		{"single jobs", client.End, []client.Record{job("a", "1", "RUNNING"), job("b", "2", "PENDING")}, []scancel{
			{client.End, "a", []string{"1"}}, {client.End, "b", []string{"2"}},
		}},
		{"a number that is somebody else's now", client.End, []client.Record{job("a", "4", "RUNNING")}, nil},
		{"one that is over", client.End, []client.Record{job("gone", "3", "RUNNING")}, nil},
		{"a task that runs", client.Terminate, []client.Record{task("many", "5", 1, "RUNNING")}, []scancel{{client.Terminate, "many", []string{"5_1"}}}},
		{"a task that ran and waits again", client.Terminate, []client.Record{task("many", "5", 2, "RUNNING")}, nil},
		{"one of the waiting tasks", client.End, []client.Record{task("many", "5", 2, "PENDING")}, []scancel{{client.End, "", []string{"5_2"}}}},
		{"a whole array", client.End, []client.Record{task("many", "5", 1, "RUNNING"), task("many", "5", 2, "PENDING"), task("many", "5", 3, "PENDING")}, []scancel{
			{client.IfQueued, "many", []string{"5"}}, {client.End, "many", []string{"5_1"}},
		}},
		{"superfluous jobs", client.IfQueued, []client.Record{job("b", "2", "PENDING"), task("again", "6", 1, "PENDING")}, []scancel{
			{client.IfQueued, "again", []string{"6"}}, {client.IfQueued, "b", []string{"2"}},
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
