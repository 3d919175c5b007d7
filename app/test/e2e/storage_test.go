package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app/test/must"
	"molrun/app/test/need"
)

// slowUpload is an upload whose bytes are sent by the test.
type slowUpload struct {
	user
	id   string
	pipe *io.PipeWriter
	done chan answer
}

// put starts a PUT with the given Content-Length, or chunked if it is -1.
func (u user) put(filename string, length int64) *slowUpload {
	u.t.Helper()
	a := &slowUpload{user: u, done: make(chan answer, 1)}
	var grant struct{ FileID, UploadURL string }
	u.do("PUT", "/upload/"+filename, nil).want(200).into(&grant)
	a.id = grant.FileID
	body, pipe := io.Pipe()
	a.pipe = pipe
	go func() {
		status, text := u.send(grant.UploadURL, body, length)
		a.done <- answer{t: u.t, status: status, body: text}
	}()
	u.t.Cleanup(func() { pipe.Close() })
	return a
}

// end closes the body and waits for the response.
func (a *slowUpload) end() answer {
	a.t.Helper()
	a.pipe.Close()
	return a.answer()
}

func (a *slowUpload) answer() answer {
	a.t.Helper()
	select {
	case got := <-a.done:
		return got
	case <-time.After(patience):
		a.t.Fatal("timeout waiting for the response to the PUT")
		return answer{}
	}
}

// waitForUpload waits until the first bytes of an upload are on disk.
func (s *instance) waitForUpload() {
	s.t.Helper()
	s.eventually("an upload has started", func() bool { return len(s.tempUploads()) > 0 })
}

// tempUploads lists the files of uploads in progress.
func (s *instance) tempUploads() []string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.data(), "uploads", "tmp", "*"))
	must.OK(s.t, err)
	return found
}

func TestUploadsBeyondTheQuotaAreRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: "[quota]\nstorage = \"100000\"\n[organizations.\"rich\"]\nquota = { storage = \"1GiB\" }\n"})
	u := s.user("lab", "ann@lab.example")
	text := strings.Repeat("x", 60_000)

	first := u.put("first.txt", int64(len(text)))
	_, err := io.WriteString(first.pipe, text[:1000])
	must.OK(t, err)
	s.waitForUpload()
	u.put("second.txt", 60_000).answer().code(403, "QUOTA_EXCEEDED") // together with the first
	_, err = io.WriteString(first.pipe, text[1000:])
	must.OK(t, err)
	first.end().want(200)

	chunked := u.put("chunked.txt", -1)
	go func() { _, _ = io.WriteString(chunked.pipe, strings.Repeat(text, 100)) }() // is cut off
	chunked.answer().code(403, "QUOTA_EXCEEDED")
	if left := s.tempUploads(); len(left) > 0 {
		t.Errorf("refused uploads left %v", left)
	}
	small := u.put("small.txt", -1)
	_, err = io.WriteString(small.pipe, text[:40_000])
	must.OK(t, err)
	small.end().want(200)
	u.do("PUT", "/upload/more.txt", nil).code(403, "QUOTA_EXCEEDED")
	u.do("DELETE", "/files/"+first.id, nil).want(204)
	u.upload("more.txt", text)

	s.user("rich", "eve@rich.example").upload("large.txt", strings.Repeat(text, 3))
}

func TestJobsBeyondTheQuotaAreRefusedUntilSomeHaveStarted(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\ncpus = 1\n[quota]\nqueued = 2\n")
	u := s.user("lab", "ann@lab.example")
	open := s.gate("go")
	u.submit("runs", "shell", script(open.wait()))
	u.running("runs")
	u.submit("a", "shell", script("true"))
	u.submit("b", "shell", script("true"))
	u.do("POST", "/submit-job", `{"jobName":"c","type":"shell","settings":`+script("true")+`}`).code(403, "QUOTA_EXCEEDED")
	open.open(t)
	u.finished("b")
	u.submit("c", "shell", script("true"))
}

// smallDisk returns a directory on its own small file system, which only root can
// mount.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("molrun-test", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		need.Skip(t, "cannot mount a file system: %v", err)
	}
	t.Cleanup(func() { must.OK(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// A disk is full without space as well as without room for more files (inodes).
func TestFullDiskRefusesUploadsAndDelaysJobs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		size, reason string
		fill         func(dir string) error
	}{
		"bytes": {"96m", "32.0 MiB", func(dir string) error { return os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 75<<20), 0o600) }},
		"files": {"96m,nr_inodes=12000", "1000 are kept free", func(dir string) (err error) {
			for n := 0; n < 11500 && err == nil; n++ {
				err = os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), nil, 0o600)
			}
			return err
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fullDisk(t, tt.size, tt.reason, tt.fill)
		})
	}
}

func fullDisk(t *testing.T, size, reason string, fill func(dir string) error) {
	disk := smallDisk(t, size)
	s := startServer(t, serverOptions{
		config:     "[disk]\nreserve = \"32MiB\"\n[database]\nfile_system = \"any\"\n",
		algorithms: map[string]string{"shell.toml": shellFile},
		data:       filepath.Join(disk, "data"),
	})
	u := s.user("lab", "ann@lab.example")
	u.upload("in.txt", "before\n")
	filler := filepath.Join(disk, "filler")
	must.OK(t, os.Mkdir(filler, 0o700))
	must.OK(t, fill(filler))

	u.put("large.txt", 10).answer().code(507, "STORAGE_FULL")
	u.submit("waits", "shell", script("cat in/input.txt > out/out.txt", `,"input":"inputs/in.txt"`))
	j := u.until("waits", "waiting with a reason", func(r record) bool { return r.StatusReason != "" })
	if j.Status != "QUEUED" || !strings.Contains(j.StatusReason, "free disk space") || !strings.Contains(j.StatusReason, reason) {
		t.Errorf("%s, reason %q", j.Status, j.StatusReason)
	}
	u.do("GET", "/jobs", nil).want(200)
	u.do("GET", "/files", nil).want(200)
	if out, errs, code := s.run("storage", "report"); code != 0 || !strings.Contains(out, "no job is started") {
		t.Errorf("report: exit code %d: %s%s", code, out, errs)
	}

	must.OK(t, os.RemoveAll(filler))
	if j := u.finished("waits"); j.Status != "COMPLETED" || string(u.result("waits", "out.txt")) != "before\n" {
		t.Errorf("after space was freed: %s, %+v", j.Status, j.Failure)
	}
	u.upload("large.txt", strings.Repeat("x", 1<<20))
}

// pruned is the output of molrun prune --json.
type pruned struct {
	DryRun bool
	Bytes  int64
	Jobs   []struct {
		JobName, Organization, User, Type, Status string
		Uploads                                   []string
		Bytes                                     int64
	}
}

func (s *instance) prune(args ...string) (p pruned) {
	s.t.Helper()
	out, errs, code := s.run(append([]string{"prune", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &p); code != 0 || err != nil {
		s.t.Fatalf("prune: exit code %d, %v: %s%s", code, err, out, errs)
	}
	return p
}

func TestPruneAndReportWorkWithAndWithoutTheService(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\nkeep_failed = \"72h\"\n[quota]\nstorage = \"1MiB\"\n")
	u := s.user("lab", "ann@lab.example")
	u.upload("in.txt", "hello\n")
	u.submit("done", "shell", script("head -c 1000 /dev/zero > out/a", `,"input":"inputs/in.txt"`))
	u.submit("failed", "shell", script("head -c 5000 /dev/zero > out/a; exit 3"))
	u.submit("pinned", "shell", script("true"))
	for _, name := range []string{"done", "failed", "pinned"} {
		u.finished(name)
	}
	u.do("POST", "/jobs/pinned/pin", nil).want(200)

	if p := s.prune("--older-than", "1h", "--dry-run"); len(p.Jobs) != 0 {
		t.Errorf("older than an hour: %+v", p)
	}
	listed := s.prune("--older-than", "0s", "--dry-run")
	if len(listed.Jobs) != 2 || !listed.DryRun || listed.Bytes < 6000 {
		t.Errorf("dry run: %+v, want the two jobs and their bytes", listed)
	}
	if p := s.prune("--older-than", "0s", "--failed", "--user", "Ann@lab.example", "--algorithm", "shell", "--yes"); len(p.Jobs) != 1 || p.Jobs[0].JobName != "failed" || p.Bytes < 5000 {
		t.Errorf("--failed deleted %+v, want the failed job with its work directory", p)
	}
	u.do("GET", "/jobs/failed", nil).code(404, "NOT_FOUND")
	u.do("GET", "/jobs/done", nil).want(200)

	check := func(state string) {
		t.Helper()
		out, errs, code := s.run("storage", "report", "--json", "--by", "user")
		var report struct {
			Disk struct{ Size, Free, Reserve int64 }
			Rows []struct {
				Organization, User       string
				Jobs, Files              int
				ResultBytes, UploadBytes int64
			}
		}
		if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || len(report.Rows) != 1 {
			t.Fatalf("%s: report: exit code %d, %v: %s%s", state, code, err, out, errs)
		}
		if r := report.Rows[0]; r.User != "ann@lab.example" || r.Jobs != 2 || r.Files != 1 || r.ResultBytes != 1000 || r.UploadBytes != 6 || report.Disk.Size == 0 {
			t.Errorf("%s: %+v", state, report)
		}
		out, errs, code = s.run("storage", "report")
		if code != 0 || !strings.Contains(out, "lab") || !strings.Contains(out, "of 1.0 MiB") || !strings.Contains(out, "are kept free") {
			t.Errorf("%s: report: exit code %d: %s%s", state, code, out, errs)
		}
		for _, by := range []string{"algorithm", "age"} {
			if out, errs, code := s.run("storage", "report", "--by", by); code != 0 || !strings.Contains(out, strings.ToUpper(by)) {
				t.Errorf("%s: report by %s: exit code %d: %s%s", state, by, code, out, errs)
			}
		}
	}
	check("service running")
	s.stop()
	check("service stopped")
	out, errs, code := s.run("prune", "--older-than", "0s", "--yes")
	if code != 0 || !strings.Contains(out, "done") || !strings.Contains(out, "inputs/in.txt") || !strings.Contains(out, "deleted: 1 jobs and 1 uploads, ") {
		t.Errorf("prune: exit code %d: %s%s", code, out, errs)
	}
	s.start()
	u.base = s.base
	u.do("GET", "/jobs/done", nil).code(404, "NOT_FOUND")
	u.do("GET", "/jobs/pinned", nil).want(200)
	if left, err := os.ReadDir(filepath.Join(s.data(), "jobs")); err != nil || len(left) != 1 {
		t.Errorf("job directories: %v, %v, want only that of the pinned job", left, err)
	}
}

func TestPruneRequiresConfirmation(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		say  string
	}{
		{[]string{}, "older-than"},
		{[]string{"--older-than", "30d"}, "--yes"},
		{[]string{"--older-than", "soon", "--dry-run"}, "soon"},
		{[]string{"--older-than", "-1h", "--dry-run"}, "--older-than"},
		{[]string{"--older-than", "30d", "--dry-run", "--yes"}, "not both"},
		{[]string{"--older-than", "30d", "--json"}, "--json"},
		{[]string{"--older-than", "30d", "--dry-run", "--larger-than", "big"}, "big"},
	} {
		if out, errs, code := outside(t, append([]string{"prune"}, tt.args...)...); code != exitUsage || !strings.Contains(errs, tt.say) || out != "" {
			t.Errorf("prune %v: exit code %d, %q %q, want a usage error with %q", tt.args, code, out, errs, tt.say)
		}
	}
	if out, errs, code := outside(t, "storage", "report", "--by", "moon"); code != exitUsage || !strings.Contains(errs, "age") {
		t.Errorf("report by moon: exit code %d, %q %q", code, out, errs)
	}
}

func TestRetentionPoliciesApplyFromTheStart(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[retention]\nfailed = \"1ms\"\n[organizations.\"careful\"]\nretention = { failed = \"0\" }\n")
	u, careful := s.user("lab", "ann@lab.example"), s.user("careful", "eve@careful.example")
	for _, one := range []user{u, careful} {
		one.submit("failed", "shell", script("exit 1"))
		one.submit("done", "shell", script("true"))
		one.finished("failed")
		one.finished("done")
	}
	s.stop()
	s.start()
	u.base, careful.base = s.base, s.base
	s.eventually("the old job is deleted", func() bool { return u.do("GET", "/jobs/failed", nil).status == 404 })
	u.do("GET", "/jobs/done", nil).want(200)
	careful.do("GET", "/jobs/failed", nil).want(200)
	s.eventually("the deletion is logged", func() bool {
		return strings.Contains(s.log.String(), `"name":"failed"`) && strings.Contains(s.log.String(), "deleted by the rules of retention")
	})
}

// A failed job that has filled the disk does not keep others waiting: what is retained
// of it goes first, and what is retained of others stays while that is enough.
func TestWorkOfFailedJobsMakesRoom(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{
		config:     "[disk]\nreserve = \"32MiB\"\n[database]\nfile_system = \"any\"\n",
		algorithms: map[string]string{"shell.toml": shellFile},
		data:       filepath.Join(smallDisk(t, "96m"), "data"),
	})
	u := s.user("lab", "ann@lab.example")
	u.submit("failed", "shell", script("head -c 10000000 /dev/zero >out/small; exit 1", ""))
	failed := u.finished("failed")
	u.submit("full", "shell", script("head -c 65000000 /dev/zero >out/large; exit 1", ""))
	full := u.finished("full")
	u.submit("waits", "shell", script("echo done >out/out.txt", ""))
	if j := u.finished("waits"); j.Status != "COMPLETED" {
		t.Errorf("the job that waited is %s: %+v", j.Status, j.Failure)
	}
	for id, want := range map[string]bool{failed.JobID: true, full.JobID: false} {
		if _, err := os.Stat(filepath.Join(s.data(), "jobs", id, "1", "work")); (err == nil) != want {
			t.Errorf("work directory of %s: %v, want that it is there: %v", id, err, want)
		}
	}
}
