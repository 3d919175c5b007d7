package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// waitForRows waits until done is true for the counts of a batch, and checks that the
// counts always add up.
func (u user) waitForRows(name string, rows int, done func(counts map[string]int) bool) record {
	u.t.Helper()
	var last record
	u.instance.eventually("the rows of "+name+" have the expected counts", func() bool {
		last = u.job(name)
		sum := 0
		for _, n := range last.SubjobCounts {
			sum += n
			if n < 0 {
				u.t.Errorf("counts %v", last.SubjobCounts)
			}
		}
		if sum != rows || len(last.SubjobCounts) != 4 {
			u.t.Fatalf("counts %v of %d rows", last.SubjobCounts, rows)
		}
		return done(last.SubjobCounts)
	})
	return last
}

// missingRows describes the jobs missing from a partial archive.
type missingRows struct {
	Count   int
	Rows    []string
	Message string
}

// says checks the status and the message of an error.
func (a answer) says(status int, message string) {
	a.t.Helper()
	var e struct{ Error struct{ Message string } }
	if a.into(&e); a.status != status || e.Error.Message != message {
		a.t.Errorf("status %d, message %s\nwant %d: %s", a.status, e.Error.Message, status, message)
	}
}

func TestBatchFromFirstStartToArchive(t *testing.T) {
	t.Parallel()
	const n = 16
	const bad = n / 4 // number of jobs that fail at first
	s := shellServer(t, "[runner]\ncpus = 4\n")
	u := s.user("lab", "ann@lab.example")
	open, fixed := s.gate("go"), string(s.gate("fixed"))
	rows := make([]string, n)
	for i := range rows {
		rows[i] = script(fmt.Sprintf("echo %d > out/row", i+1))
		if i%4 == 1 {
			rows[i] = script(fmt.Sprintf("echo %d > out/row; test -e '%s'", i+1, fixed))
		}
	}
	rows[0] = script("echo 1 > out/row; " + open.wait())
	b := u.batch("b", "shell", rows...)
	if b.Status != "QUEUED" || b.SubjobCounts["QUEUED"] != n {
		t.Errorf("a new batch: %+v", b)
	}
	u.do("DELETE", "/jobs/b", nil).code(409, "JOB_NOT_FINISHED")
	b = u.waitForRows("b", n, func(c map[string]int) bool { return c["COMPLETED"] == n-1-bad && c["FAILED"] == bad })
	if b.Status != "RUNNING" || b.StartedAt == "" {
		t.Errorf("a batch with a running row: %+v", b)
	}
	u.do("POST", "/result", `{"jobName":"b"}`).says(409, `Batch "b" is RUNNING with 11 of 16 jobs COMPLETED; send "partial": true (molrun results --partial) `+
		`for their archive; its result can be downloaded when all are COMPLETED.`)
	u.do("GET", "/jobs/b/logs", nil).code(404, "NOT_FOUND")
	partial := unzip(t, u.do("GET", u.linkTo(`{"jobName":"b","partial":true}`).DownloadURL, nil).want(200).body)
	if len(partial) != 3*(n-1-bad) || partial["b-3/row"] != "3\n" || partial["b-2/row"] != "" || partial["b-1/row"] != "" {
		t.Errorf("the partial archive has %d files", len(partial))
	}
	open.open(t)
	if b = u.finished("b"); b.Status != "FAILED" || b.CompletedAt == "" || b.SubjobCounts["FAILED"] != bad {
		t.Errorf("a batch with failed rows: %+v", b)
	}
	const sentence = `The archive of batch "b" has 12 of its 16 jobs; these have no result: b-2, b-6, b-10, b-14.`
	var given struct{ Missing *missingRows }
	u.do("POST", "/result", `{"jobName":"b","partial":true}`).want(200).into(&given)
	if want := (missingRows{4, []string{"b-2", "b-6", "b-10", "b-14"}, sentence}); given.Missing == nil || !reflect.DeepEqual(*given.Missing, want) {
		t.Errorf("of the partial archive %+v, want %+v", given.Missing, want)
	}
	p := u.person()
	p.fails(exitInvalid, "(molrun results --partial)", "results", "b")
	for _, args := range [][]string{{"results", "b", "--partial"}, {"results", "b", "--partial", "--extract"}} {
		if _, errs, code := p.run(args...); code != 0 || !strings.Contains(errs, sentence) {
			t.Errorf("%q: exit code %d: %s", args, code, errs)
		}
	}
	if text, err := os.ReadFile(filepath.Join(p.dir, "b", "b-1", "row")); string(text) != "1\n" {
		t.Errorf("unpacked %q, %v", text, err)
	}

	must.OK(t, os.WriteFile(fixed, nil, 0o600))
	var again record
	u.do("POST", "/jobs/b/retry", nil).want(200).into(&again)
	if again.Status != "QUEUED" || again.StatusReason != "" || again.CompletedAt != "" || again.SubjobCounts["COMPLETED"] != n-bad || again.SubjobCounts["QUEUED"] != bad {
		t.Errorf("after retry: %+v", again)
	}
	b = u.waitForRows("b", n, func(c map[string]int) bool { return c["COMPLETED"] == n })
	if b.Status != "COMPLETED" || b.ResultBytes == 0 {
		t.Errorf("after the last row: %+v", b)
	}
	if j, k := u.job("b-2"), u.job("b-3"); j.Attempts != 2 || k.Attempts != 1 {
		t.Errorf("attempts %d of a failed row, %d of another", j.Attempts, k.Attempts)
	}
	link := u.linkTo(`{"jobName":"b"}`)
	files := unzip(t, u.do("GET", link.DownloadURL, nil).want(200).body)
	if link.FileName != "b.zip" || len(files) != 3*n {
		t.Errorf("archive %s with %d files, want %d", link.FileName, len(files), 3*n)
	}
	for i := range n {
		must.Equal(t, fmt.Sprintf("row %d in the archive", i+1), files[fmt.Sprintf("b-%d/row", i+1)], fmt.Sprintf("%d\n", i+1))
	}
	u.wantResult("b", "b-7/row", "7\n")
	u.do("DELETE", "/jobs/b", nil).want(204)
	for _, name := range []string{"b", "b-1", "b-16"} {
		u.do("GET", "/jobs/"+name, nil).code(404, "NOT_FOUND")
	}
	if left, err := os.ReadDir(filepath.Join(s.data(), "jobs")); err != nil || len(left) != 0 {
		t.Errorf("directories left after deleting a batch: %d, %v", len(left), err)
	}
}
