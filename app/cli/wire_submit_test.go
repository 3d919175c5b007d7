package cli

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
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
	same(t, "a running job", sortedNames(u.members("good")), with("inputs", "startedAt"))
	u.submit("bad", "shell", script("echo oh; exit 2"))
	u.until("bad", "waiting with a place in the queue", func(record) bool { return u.members("bad")["queue"] != nil })
	same(t, "a queued job", sortedNames(u.members("bad")), with("statusReason", "queue"))
	if q := string(u.members("bad")["queue"]); q != `{"position":1,"of":1,"blockedBy":"cpu"}` {
		t.Errorf("its place in the queue is %s", q)
	}
	open.open(t)
	u.finished("good")
	u.finished("bad")
	good := u.members("good")
	same(t, "a completed job", sortedNames(good), with("inputs", "startedAt", "completedAt", "isolation", "metrics", "resultBytes"))
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
	same(t, "a failed job", sortedNames(bad), with("startedAt", "completedAt", "isolation", "metrics", "failure"))
	if got := string(bad["failure"]); !strings.HasPrefix(got, `{"code":"EXIT_STATUS","message":"The program`) || !strings.HasSuffix(got, `exit status 2. Its last words: oh","exitCode":2,"logTail":"oh\n"}`) {
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

// outcome counts responses to concurrent submissions.
type outcome struct{ created, again, refused int }

// submitAll sends bodies concurrently and counts the outcomes. All responses must
// have the same job.
func submitAll(t *testing.T, u user, path string, bodies []string) (o outcome) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	ids := map[string]bool{}
	for _, body := range bodies {
		wg.Go(func() {
			a := u.do("POST", path, body)
			mu.Lock()
			defer mu.Unlock()
			if a.status == 409 {
				a.code(409, "JOB_ALREADY_EXISTS")
				o.refused++
				return
			}
			var r record
			if a.status != 200 {
				t.Errorf("status %d, body %s", a.status, a.body)
				return
			}
			a.into(&r)
			ids[r.JobID] = true
			if *r.Created {
				o.created++
			} else {
				o.again++
			}
		})
	}
	wg.Wait()
	if len(ids) != 1 {
		t.Errorf("%d jobs created: %v", len(ids), ids)
	}
	return o
}

// TestInvisibleCharactersAreRefusedInEveryName gives names that look like another,
// or like nothing, wherever a client or an administrator gives a name.
func TestInvisibleCharactersAreRefusedInEveryName(t *testing.T) {
	t.Parallel()
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	for _, name := range []string{"a\u00adb", "a\u200bb", "a\u200db", "a\u2060b", "\ufeffa", "\u200b", "\u3164", "\u202ea"} {
		u.do("POST", "/submit-job", jobBody(name, script("true"))).detail("body.jobName")
		u.do("POST", "/submit-batch", batchBody(name, "words", "{}")).detail("body.batchName")
		u.do("POST", "/submit-batch", fmt.Sprintf(`{"batchName":"b","type":"words","settings":[{}],"jobNames":[%q]}`, name)).detail("body.jobNames.0")
		u.do("POST", "/submit-job", jobBody("j", script("true"), fmt.Sprintf(`,"tags":{%q:"v"}`, name))).want(422)
		escaped := url.PathEscape(name)
		u.do("PUT", "/upload/"+escaped, nil).detail("path.filename")
		u.do("PUT", "/upload/a.txt?folder=in/"+escaped, nil).detail("query.folder")
		for _, flags := range [][]string{
			{"--organization", name, "--email", "ann@lab.example"},
			{"--organization", "lab", "--email", name + "@lab.example"},
		} {
			if _, errs, code := s.run(append([]string{"key", "create"}, flags...)...); code != exitInvalid || strings.Contains(errs, "molrun_") {
				t.Errorf("key create %q: exit code %d: %s", flags, code, errs)
			}
		}
	}
}

func TestConcurrentIdenticalSubmissionsCreateOneJob(t *testing.T) {
	t.Parallel()
	s := busy(t)
	u := s.user("lab", "ann@lab.example")
	if got := submitAll(t, u, "/submit-job", slices.Repeat([]string{jobBody("same", script("true"))}, 200)); got != (outcome{created: 1, again: 199}) {
		t.Errorf("200 identical submissions: %+v", got)
	}
	if got := submitAll(t, u, "/submit-batch", slices.Repeat([]string{batchBody("batch", "words", "{}", `{"text":"b"}`)}, 20)); got != (outcome{created: 1, again: 19}) {
		t.Errorf("20 identical batches: %+v", got)
	}
}

func TestConcurrentConflictingSubmissionsCreateOneJob(t *testing.T) {
	t.Parallel()
	s := busy(t)
	u := s.user("lab", "ann@lab.example")
	bodies := make([]string, 200)
	for i := range bodies {
		bodies[i] = jobBody("one", script(fmt.Sprint("echo ", i)))
	}
	if got := submitAll(t, u, "/submit-job", bodies); got != (outcome{created: 1, refused: 199}) {
		t.Errorf("200 conflicting submissions: %+v", got)
	}
}

func TestIdenticalBodyReturnsTheJobEvenIfItsInputsAreGone(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "")
	u := s.user("lab", "ann@lab.example")
	file := u.upload("in.txt", "text")
	body := jobBody("j", script("cat in/*", `,"input":"inputs/in.txt"`))
	var first, again record
	u.do("POST", "/submit-job", body).want(200).into(&first)
	u.finished("j")
	u.do("DELETE", "/files/"+file, nil).want(204)
	u.do("POST", "/submit-job", body).want(200).into(&again)
	if again.JobID != first.JobID || *again.Created || again.Status != "COMPLETED" {
		t.Errorf("after its file was deleted: %+v", again)
	}
	s.stop()
	algorithm := filepath.Join(s.dir, "algorithms", "shell.toml")
	must(t, os.WriteFile(algorithm, []byte(strings.NewReplacer(`name = "script"`, `name = "code"`, "settings.script", "settings.code", "@DIR@", s.dir).Replace(shellFile)), 0o600))
	s.start()
	u.do("POST", "/submit-job", body).want(200).into(&again)
	if again.JobID != first.JobID || *again.Created {
		t.Errorf("after its algorithm was changed: %+v", again)
	}
	u.do("POST", "/submit-job", strings.Replace(body, "cat", "dog", 1)).detail("body.settings.script", "body.settings.input")
	s.stop()
	must(t, os.Remove(algorithm))
	s.start()
	u.do("POST", "/submit-job", " "+strings.ReplaceAll(body, `":`, `" : `)).want(200).into(&again)
	if again.JobID != first.JobID || *again.Created {
		t.Errorf("after its algorithm was removed: %+v", again)
	}
}

func TestEquivalentSubmissionsReturnTheSameJob(t *testing.T) {
	t.Parallel()
	s := busy(t)
	u, v := s.user("lab", "ann@lab.example"), s.user("lab", "bob@lab.example")
	u.upload("in.txt", "text")
	first := u.submit("j", "shell", script("true", `,"cpus":1,"input":"inputs/in.txt"`))
	u.upload("in.txt", "other text")
	tests := []struct {
		name, body string
		status     int
	}{
		{"members reordered, more space", `{ "settings": {"input":"inputs/in.txt", "cpus":1, "script":"true"}, "type":"shell", "jobName":"j" }`, 200},
		{"a number in another notation", jobBody("j", `{"script":"true","cpus":10e-1,"input":"inputs/in.txt"}`), 200},
		{"letters escaped", jobBody("j", `{"script":"tru\u0065","cpus":1,"input":"inputs/in.txt"}`), 200},
		{"a default omitted", jobBody("j", `{"script":"true","input":"inputs/in.txt"}`), 200},
		{"a default given", jobBody("j", `{"script":"true","cpus":1,"gpus":0,"input":"inputs/in.txt"}`), 200},
		{"the default version given", jobBody("j", `{"script":"true","input":"inputs/in.txt"}`, `,"version":"1"`), 200},
		{"the default priority and time given", jobBody("j", `{"script":"true","input":"inputs/in.txt"}`, `,"priority":0,"maxRuntimeSeconds":3600`), 200},
		{"another priority", jobBody("j", `{"script":"true","input":"inputs/in.txt"}`, `,"priority":-1`), 409},
		{"another time", jobBody("j", `{"script":"true","input":"inputs/in.txt"}`, `,"maxRuntimeSeconds":60`), 409},
		{"another setting", jobBody("j", `{"script":"false","input":"inputs/in.txt"}`), 409},
		{"a file omitted", jobBody("j", `{"script":"true"}`), 409},
		{"another algorithm", `{"jobName":"j","type":"words","settings":{}}`, 409},
		{"a batch", batchBody("j", "words", "{}"), 409},
	}
	for _, tt := range tests {
		path := "/submit-job"
		if strings.Contains(tt.body, "batchName") {
			path = "/submit-batch"
		}
		a := u.do("POST", path, tt.body)
		if tt.status == 409 {
			a.code(409, "JOB_ALREADY_EXISTS")
			continue
		}
		var again record
		a.want(200).into(&again)
		if again.JobID != first.JobID || *again.Created || string(again.Settings) != string(first.Settings) {
			t.Errorf("%s: %s", tt.name, a.body)
		}
	}
	// Names belong to the organization: another member gets the same job for the same
	// body.
	var theirs record
	v.do("POST", "/submit-job", jobBody("j", script("true", `,"cpus":1,"input":"inputs/in.txt"`))).want(200).into(&theirs)
	if theirs.JobID != first.JobID || *theirs.Created || theirs.JobEmail != "ann@lab.example" {
		t.Errorf("submitted by another member: %+v", theirs)
	}
}

func TestNamesAreUniqueAcrossJobsBatchesAndRows(t *testing.T) {
	t.Parallel()
	s := busy(t)
	u := s.user("lab", "ann@lab.example")
	u.submit("job", "words", "{}")
	u.submit("b-2", "words", "{}")
	u.batch("batch", "words", "{}")
	u.do("POST", "/submit-batch", batchBody("job", "words", "{}")).code(409, "JOB_ALREADY_EXISTS")
	u.do("POST", "/submit-batch", batchBody("b", "words", "{}", "{}")).code(409, "JOB_ALREADY_EXISTS")
	u.do("POST", "/submit-batch", `{"batchName":"c","type":"words","settings":[{},{}],"jobNames":["x","batch-1"]}`).code(409, "JOB_ALREADY_EXISTS")
	u.do("POST", "/submit-job", `{"jobName":"batch","type":"words","settings":{}}`).code(409, "JOB_ALREADY_EXISTS")
	u.do("POST", "/submit-job", `{"jobName":"batch-1","type":"words","settings":{"text":"x"}}`).code(409, "JOB_ALREADY_EXISTS")
	for _, name := range []string{"b", "b-1", "c", "x"} {
		u.do("GET", "/jobs/"+name, nil).code(404, "NOT_FOUND")
	}
	u.do("POST", "/jobs/job/cancel", nil).want(200)
	u.do("DELETE", "/jobs/job", nil).want(204)
	if again := u.submit("job", "words", `{"text":"other"}`); !*again.Created {
		t.Error("the name of a deleted job is not free")
	}
}

func TestNamesAreOneLineOfTextAndNotPaths(t *testing.T) {
	t.Parallel()
	s := busy(t)
	u := s.user("lab", "ann@lab.example")
	for _, bad := range []string{
		`""`, `"."`, `".."`, `"a/b"`, `"a\\b"`, `" a"`, `"a "`, `"a\u0000"`, `"a\n"`, `"a\u202eb"`, `"a\u2066b"`, `"e\u0301"`, `"` + strings.Repeat("x", 201) + `"`,
	} {
		u.do("POST", "/submit-job", `{"jobName":`+bad+`,"type":"words","settings":{}}`).detail("body.jobName")
		u.do("POST", "/submit-batch", `{"batchName":`+bad+`,"type":"words","settings":[{}]}`).detail("body.batchName")
		u.do("POST", "/submit-batch", `{"batchName":"b","type":"words","settings":[{}],"jobNames":[`+bad+`]}`).detail("body.jobNames.0")
	}
	for _, good := range []string{"a", "...", "é", "a b", "C:", "-rf", "~", strings.Repeat("β", 200)} {
		u.do("POST", "/submit-job", fmt.Sprintf(`{"jobName":%q,"type":"words","settings":{}}`, good)).want(200)
	}
}

func TestNamesAreNeverUsedAsPathsOrShellWords(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "")
	u := s.user("lab", "ann@lab.example")
	for _, name := range []string{"$(touch pwned)", "`touch pwned`", "; touch pwned;", "-rf", "...", "%2e%2e%2fx", "a\" 'b"} {
		u.do("POST", "/submit-job", fmt.Sprintf(`{"jobName":%q,"type":"shell","settings":%s}`, name, script("echo ok > out/a"))).want(200)
		if j := u.finished(name); j.Status != "COMPLETED" {
			t.Errorf("%q: %+v", name, j.Failure)
		}
		if files := unzip(t, u.result(name, "")); files["a"] != "ok\n" {
			t.Errorf("%q: result %q", name, files)
		}
	}
	err := filepath.WalkDir(s.dir, func(path string, e os.DirEntry, err error) error {
		if e != nil && e.IsDir() && path == filepath.Join(s.data(), "etc") {
			return filepath.SkipDir // what jobs see of the machine's
		}
		for _, word := range []string{"pwned", "rf", "2e", "touch"} {
			if strings.Contains(strings.TrimPrefix(path, s.dir), word) {
				t.Errorf("a file is named after a job: %s", path)
			}
		}
		return err
	})
	must(t, err)
}

func TestVersionPriorityAndTimeLimitAreOptional(t *testing.T) {
	t.Parallel()
	two := strings.Replace(strings.Replace(wordsFile, `version = "7"`, "version = \"8\"\ndefault = true", 1), "hello", "bye", 1)
	s := startServer(t, serverOptions{config: "[runner]\ncpus = 1\n", algorithms: map[string]string{
		"shell.toml": shellFile, "words.toml": wordsFile, "words-8.toml": two,
	}})
	s.blockCPU("block")
	u, chief := s.user("lab", "ann@lab.example"), s.user("lab", "chief@lab.example", "--role", "admin")
	if v := u.submit("default", "words", "{}").Version; v != "8" {
		t.Errorf("version %q, want the default", v)
	}
	var r record
	u.do("POST", "/submit-job", `{"jobName":"named","type":"words","version":"7","settings":{}}`).want(200).into(&r)
	if r.Version != "7" {
		t.Errorf("version %q, want the requested one", r.Version)
	}
	if m := u.do("POST", "/submit-job", `{"jobName":"x","type":"words","version":"9","settings":{}}`).messages(); !strings.Contains(m["body.version"], "7") {
		t.Errorf("an unknown version: %q; want the available ones", m)
	}
	for i, tt := range []struct {
		by       user
		priority string
		ok       bool
	}{
		{u, "-10", true}, {u, "0", true}, {u, "1", false}, {u, "-11", false}, {chief, "10", true}, {chief, "11", false}, {u, "1.5", false}, {u, `"1"`, false},
	} {
		a := tt.by.do("POST", "/submit-job", fmt.Sprintf(`{"jobName":"p%d","type":"words","settings":{},"priority":%s}`, i, tt.priority))
		if tt.ok {
			a.want(200)
		} else {
			a.detail("body.priority")
		}
	}
	for i, tt := range []struct {
		seconds string
		ok      bool
	}{{"1", true}, {"3600", true}, {"3601", false}, {"0", false}, {"-1", false}} {
		a := u.do("POST", "/submit-job", jobBody(fmt.Sprint("m", i), script("true"), `,"maxRuntimeSeconds":`+tt.seconds))
		if tt.ok {
			a.want(200)
		} else {
			a.detail("body.maxRuntimeSeconds")
		}
	}
}

func TestValidationMatchesSubmissionAndQueuesNothing(t *testing.T) {
	t.Parallel()
	s := busy(t)
	u := s.user("lab", "ann@lab.example")
	var v struct {
		Valid      bool
		Normalized map[string]any
		Detail     []any
	}
	u.do("POST", "/validate-job", jobBody("j", script("true"))).want(200).into(&v)
	if !v.Valid || len(v.Detail) != 0 || v.Normalized["cpus"] != 1.0 || v.Normalized["script"] != "true" {
		t.Errorf("a valid submission: %+v", v)
	}
	for _, body := range []string{
		jobBody("a/b", `{"cpus":0,"scirpt":"x","input":"inputs/none.txt"}`, `,"priority":99,"extra":1`),
		`{"jobName":"j","type":"shel","settings":{}}`,
		`{"jobName":"j","type":"shell","settings":{"script":"true","cpus":100000}}`,
	} {
		var validated, refused struct{ Detail any }
		v.Valid = true
		u.do("POST", "/validate-job", body).want(200).into(&validated).into(&v)
		u.do("POST", "/submit-job", body).want(422).into(&refused)
		if v.Valid || fmt.Sprint(validated) != fmt.Sprint(refused) {
			t.Errorf("%s: validation reports %v, submission %v", body, validated, refused)
		}
	}
	if all := u.names(nil); len(all) != 0 {
		t.Errorf("validation queued %q", all)
	}
}

func TestAlgorithmIsShownWithEverythingASubmissionNeeds(t *testing.T) {
	t.Parallel()
	u := plain(t).user("lab", "ann@lab.example")
	var list struct {
		Algorithms []struct {
			Type, Version, Title string
			Ready                bool
		}
	}
	u.do("GET", "/algorithms", nil).want(200).into(&list)
	found := map[string]bool{}
	for _, a := range list.Algorithms {
		found[a.Type] = a.Ready && a.Title != ""
	}
	if !found["cg-idp"] || !found["shell"] {
		t.Errorf("catalogue %+v; want the built-in and the site's algorithms, ready", list)
	}
	var one struct {
		Versions  []string
		Ready     *bool
		Resources map[string]any
		Example   map[string]any
		Schema    struct{ Properties map[string]any }
	}
	u.do("GET", "/algorithms/cg-idp?version=1", nil).want(200).into(&one)
	if len(one.Versions) == 0 || one.Ready == nil || one.Resources["cpus"] == nil || len(one.Example) == 0 || one.Schema.Properties["steps"] == nil {
		t.Errorf("cg-idp: %+v", one)
	}
	u.do("GET", "/algorithms/none", nil).code(404, "NOT_FOUND")
	u.do("GET", "/algorithms/shell?version=none", nil).code(404, "NOT_FOUND")
}

func TestWaitEndsAtItsTimeout(t *testing.T) {
	t.Parallel()
	s := busy(t)
	u := s.user("lab", "ann@lab.example")
	u.submit("j", "words", "{}")
	var r record
	start := time.Now()
	u.do("GET", "/jobs/j?wait=200ms", nil).want(200).into(&r)
	if waited := time.Since(start); r.Status != "QUEUED" || waited < 200*time.Millisecond {
		t.Errorf("%s after %v, want QUEUED after 200ms", r.Status, waited)
	}
	u.do("GET", "/jobs/j?wait=61s", nil).detail("query.wait")
}
