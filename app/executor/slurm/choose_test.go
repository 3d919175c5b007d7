package slurm

import (
	"os"
	"path/filepath"
	"testing"

	"molrun/app"
	"molrun/app/task"
	"molrun/app/test/must"
)

// TestJobThatClaimedTheAttemptCounts has a task that was submitted twice.
func TestJobThatClaimedTheAttemptCounts(t *testing.T) {
	row := TaskID{Name: "molrun-token"}
	for name, tt := range map[string]struct {
		claimant  string // "" if no job claimed the attempt
		first     string // state of the older job
		want      string // ID of the valid job, "" if Slurm does not know it
		cancelled string // ID of the canceled job
	}{
		"both wait":                        {"", "PENDING", "8", "9"},
		"the older claimed it":             {"8", "RUNNING", "8", "9"},
		"the younger claimed it":           {"9", "PENDING", "9", "8"},
		"one that is forgotten claimed it": {"7", "PENDING", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.claimant != "" {
				claim(t, dir, tt.claimant)
			}
			e := &Executor{options: Options{Log: func(string, ...any) {}}, canceler: newCanceler()}
			e.snapshot.records = map[TaskID][]jobRecord{row: {
				{TaskID: row, ID: "9", State: "PENDING"}, {TaskID: row, ID: "8", State: tt.first},
			}}
			r, known, err := e.choose(app.Task{Dir: dir}, &tracked{row: row, found: true})
			if err != nil || r.ID != tt.want || known != (tt.want != "") {
				t.Errorf("job %q counts, known %v, want %q (%v)", r.ID, known, tt.want, err)
			}
			cancelled := ""
			select {
			case c := <-e.canceler.requests:
				cancelled = c.job.ID
			default:
			}
			if cancelled != tt.cancelled || len(e.canceler.requests) > 0 {
				t.Errorf("job %q is cancelled, want %q", cancelled, tt.cancelled)
			}
		})
	}
}

func claim(t *testing.T, dir, id string) {
	t.Helper()
	must.OK(t, os.Mkdir(filepath.Join(dir, task.ClaimDir), 0o700))
	must.OK(t, os.WriteFile(filepath.Join(dir, task.ClaimDir, "job"), []byte(id+"\n"), 0o600))
}
