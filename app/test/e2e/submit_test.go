package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"molrun/app/test/must"
)

func TestRecordHasExactlyTheMembersOfItsStatus(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\ncpus = 1\n")
	u := s.user("lab", "ann@lab.example")
	always := []string{
		"attempts", "createdAt", "executor", "jobEmail", "jobId", "jobName", "maxRuntimeSeconds", "organization",
		"pinned", "priority", "settings", "status", "type", "version",
	}
	with := func(more ...string) []string {
		all := slices.Concat(always, more)
		slices.Sort(all)
		return all
	}
	u.upload("in.txt", "text")
	open := s.gate("go")
	u.submit("good", "shell", `{"script":"`+strings.ReplaceAll(open.wait(), `"`, `\"`)+`; echo a > out/a", "cpus" : 1.0,"input":"inputs/in.txt"}`)
	u.running("good")
	must.Equal(t, "a running job", sortedNames(u.members("good")), with("inputs", "startedAt"))
	u.submit("bad", "shell", script("echo oh; exit 2"))
	u.until("bad", "waiting with a place in the queue", func(record) bool { return u.members("bad")["queue"] != nil })
	must.Equal(t, "a queued job", sortedNames(u.members("bad")), with("statusReason", "queue"))
	must.Equal(t, "its place in the queue", string(u.members("bad")["queue"]), `{"position":1,"of":1,"blockedBy":"cpu"}`)
	open.open(t)
	u.finished("good")
	u.finished("bad")
	good := u.members("good")
	must.Equal(t, "a completed job", sortedNames(good), with("inputs", "startedAt", "completedAt", "isolation", "metrics", "resultBytes"))
	if got := string(good["settings"]); !strings.HasSuffix(got, `,"cpus":1.0,"input":"inputs/in.txt"}`) {
		t.Errorf("settings are %s, want them as sent", got)
	}
	if got := string(good["version"]) + string(good["maxRuntimeSeconds"]) + string(good["priority"]) + string(good["pinned"]); got != `"1"36000false` {
		t.Errorf("version, limit, priority, pinned: %s", got)
	}
	for _, at := range []string{"createdAt", "startedAt", "completedAt"} {
		if !regexp.MustCompile(`^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"$`).Match(good[at]) {
			t.Errorf("%s is %s, want UTC with milliseconds", at, good[at])
		}
	}
	bad := u.members("bad")
	must.Equal(t, "a failed job", sortedNames(bad), with("startedAt", "completedAt", "isolation", "metrics", "failure"))
	if got := string(bad["failure"]); !strings.HasPrefix(got, `{"code":"EXIT_STATUS","message":"The program`) || !strings.HasSuffix(got, `exit status 2. Last output: oh","exitCode":2,"logTail":"oh\n"}`) {
		t.Errorf("failure %s", got)
	}
	u.batch("batch", "shell", script("true"))
	u.finished("batch")
	if m := u.members("batch"); m["settings"] != nil || m["subjobCounts"] == nil || m["subjobs"] != nil {
		t.Errorf("a batch has the members %q", sortedNames(m))
	}
	if m := u.members("batch-1"); string(m["batch"]) != `"batch"` || m["subjobCounts"] != nil {
		t.Errorf("a row has the members %q", sortedNames(m))
	}
}

func TestConcurrentConflictingSubmissionsCreateOneJob(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	var created, refused atomic.Int64
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			a := u.do("POST", "/submit-job", jobBody("one", script(fmt.Sprint("echo ", i))))
			if a.status == 200 {
				created.Add(1)
				return
			}
			a.code(409, "JOB_ALREADY_EXISTS")
			refused.Add(1)
		})
	}
	all.Wait()
	if created.Load() != 1 || refused.Load() != 199 {
		t.Errorf("200 conflicting submissions: %d created, %d refused", created.Load(), refused.Load())
	}
}

func TestNamesAreNeverUsedAsPathsOrShellWords(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "")
	u := s.user("lab", "ann@lab.example")
	for _, name := range []string{"$(touch pwned)", "`touch pwned`", "; touch pwned;", "-rf", "...", "%2e%2e%2fx", "a\" 'b"} {
		u.do("POST", "/submit-job", fmt.Sprintf(`{"jobName":%q,"type":"shell","settings":%s}`, name, script("echo ok > out/a"))).want(200)
		u.completed(name)
		if files := unzip(t, u.result(name, "")); files["a"] != "ok\n" {
			t.Errorf("%q: result %q", name, files)
		}
	}
	err := filepath.WalkDir(s.dir, func(path string, _ os.DirEntry, err error) error {
		for _, word := range []string{"pwned", "rf", "2e", "touch"} {
			if strings.Contains(strings.TrimPrefix(path, s.dir), word) {
				t.Errorf("a file is named after a job: %s", path)
			}
		}
		return err
	})
	must.OK(t, err)
}
