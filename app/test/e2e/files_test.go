package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestFileReferencesHaveThreeForms(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	u.upload("in.txt", "old\n")
	id := u.upload("in.txt", "new\n")
	u.submit("source", "shell", script("mkdir out/sub; echo made > out/sub/made.txt"))
	u.finished("source")
	for name, ref := range map[string]string{"by id": id, "by name": "inputs/in.txt", "of a job": "job:source/sub/made.txt"} {
		j := u.submit(name, "shell", script("cp in/* out/copy", fmt.Sprintf(`,"input":%q`, ref)))
		want, filename := "new\n", "in.txt"
		if name == "of a job" {
			want, filename = "made\n", "made.txt"
		}
		if len(j.Inputs) != 1 || j.Inputs[0].Setting != "input" || j.Inputs[0].Filename != filename || j.Inputs[0].SHA256 == "" || (j.Inputs[0].FileID == id) != (name != "of a job") {
			t.Errorf("%s: inputs %+v", name, j.Inputs)
		}
		u.finished(name)
		if got := string(u.result(name, "copy")); got != want {
			t.Errorf("%s: the program read %q, want %q", name, got, want)
		}
	}
}

func TestInputsAreResolvedAtSubmission(t *testing.T) {
	t.Parallel()
	s, open := blockedServer(t, "")
	u := s.user("lab", "ann@lab.example")
	old := u.upload("in.txt", "as submitted")
	j := u.submit("j", "shell", script("cp in/input.txt out/copy", `,"input":"inputs/in.txt"`))
	u.upload("in.txt", "uploaded later")
	open.open(t)
	u.finished("j")
	if got := string(u.result("j", "copy")); got != "as submitted" || j.Inputs[0].FileID != old {
		t.Errorf("the program read %q, inputs %+v", got, j.Inputs)
	}
}

func TestInputsOfUnfinishedJobsCannotBeDeleted(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\ncpus = 1\n")
	u := s.user("lab", "ann@lab.example")
	file := u.upload("in.txt", "text")
	u.submit("source", "shell", script("echo made > out/made.txt"))
	u.finished("source")
	u.batch("rows", "shell", script("echo made > out/made.txt"))
	u.finished("rows")
	open := s.gate("go")
	u.submit("runs", "shell", script(open.wait(), `,"input":"`+file+`"`))
	u.running("runs")
	u.submit("waits", "shell", script("true", `,"input":"job:source/made.txt","other":"job:rows-1/made.txt"`))
	refused := func() {
		t.Helper()
		u.do("DELETE", "/files/"+file, nil).code(409, "FILE_IN_USE")
		u.do("DELETE", "/jobs/source", nil).code(409, "FILE_IN_USE")
		u.do("DELETE", "/jobs/rows", nil).code(409, "FILE_IN_USE")
		u.do("DELETE", "/jobs/rows-1", nil).code(409, "FILE_IN_USE")
	}
	refused()
	s.stop()
	s.start()
	refused()
	open.open(t)
	u.finished("runs")
	u.finished("waits")
	before := 0
	s.stored(func(path string, _ os.FileInfo) {
		if strings.Contains(path, file) {
			before++
		}
	})
	u.do("DELETE", "/files/"+file, nil).want(204)
	s.stored(func(path string, _ os.FileInfo) {
		if strings.Contains(path, file) {
			t.Errorf("%s is left after deleting the file", path)
		}
	})
	if before != 1 {
		t.Errorf("one upload has %d files on disk", before)
	}
	u.do("DELETE", "/jobs/source", nil).want(204)
	u.do("DELETE", "/jobs/rows", nil).want(204)
}

// TestFilesAreReadWhileTheyAreWritten runs a program that lays traps into its output
// directory and swaps a file for a link and a pipe as fast as it can.
func TestFilesAreReadWhileTheyAreWritten(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "")
	u := s.user("lab", "ann@lab.example")
	open := s.gate("go")
	u.submit("j", "shell", script("echo one > out/a.txt; mkfifo out/fifo; ln -s /etc/passwd out/link; echo safe > safe;"+
		" (while [ -d out ] && [ ! -e stop ]; do ln -sf /etc/passwd x; mv x out/b; mkfifo y; mv y out/b; cp safe z; mv z out/b; done) & "+open.wait()+"; touch stop; wait; rm -f out/b; echo two >> out/a.txt; false"))
	u.running("j")
	s.eventually("the file is written", func() bool { return string(u.do("GET", "/jobs/j/files/a.txt", nil).body) == "one\n" })
	for _, path := range []string{"fifo", "link", "../settings.json", "/etc/passwd"} {
		u.do("GET", "/jobs/j/files/"+path, nil).code(404, "NOT_FOUND")
	}
	for range 500 {
		if a := u.do("GET", "/jobs/j/files/b", nil); a.status == 200 && string(a.body) != "safe\n" && len(a.body) > 0 {
			t.Fatalf("got %q", a.body)
		}
		u.do("GET", "/jobs/j/files", nil).want(200)
	}
	open.open(t)
	if j := u.finished("j"); j.Status != "FAILED" {
		t.Fatalf("%+v", j)
	}
	if got := string(u.do("GET", "/jobs/j/files/a.txt", nil).want(200).body); got != "one\ntwo\n" {
		t.Errorf("the failed job's file has %q", got)
	}
	u.do("POST", "/jobs/j/retry", nil).want(200)
}

func TestLogsAreReadableWhileTheJobRuns(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	open := s.gate("go")
	u.submit("j", "shell", script("echo first; "+open.wait()+"; echo second; false"))
	u.running("j")
	var log answer
	s.eventually("the first line is in the log", func() bool {
		log = u.do("GET", "/jobs/j/logs", nil).want(200)
		return string(log.body) == "first\n"
	})
	if log.header.Get("X-Log-Size") != "6" {
		t.Errorf("X-Log-Size %s", log.header.Get("X-Log-Size"))
	}
	open.open(t)
	u.finished("j")
	if got := string(u.do("GET", "/jobs/j/logs", nil).want(200).body); got != "first\nsecond\n" {
		t.Errorf("after the job: %q", got)
	}
}
