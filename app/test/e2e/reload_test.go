package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"molrun/app/client"
	"molrun/app/test/must"
)

// reloadable returns an algorithm file whose program prints a word.
func reloadable(version, word string) string {
	return strings.NewReplacer("@VERSION@", version, "@WORD@", word).Replace(`
format = 1
type = "say"
version = "@VERSION@"
title = "Say @WORD@"
command = ["sh", "-c", "while [ ! -e '@DIR@/go' ]; do sleep 0.05; done; echo @WORD@ > out/word"]
[sandbox]
read = ["@DIR@"]
`)
}

// titleOf returns the title of a type as clients see it, or "" if the type is not
// offered.
func (u user) titleOf(typ string) string {
	u.t.Helper()
	var list struct {
		Algorithms []struct{ Type, Title string }
	}
	u.do("GET", "/algorithms", nil).want(200).into(&list)
	for _, a := range list.Algorithms {
		if a.Type == typ {
			return a.Title
		}
	}
	return ""
}

// reload runs `molrun algorithms reload`, which must exit with the given code, and
// returns its report.
func (s *instance) reload(code int) (read client.AlgorithmsRead) {
	s.t.Helper()
	out, errs, got := s.run("algorithms", "reload", "--json")
	if err := json.Unmarshal([]byte(out), &read); err != nil || got != code {
		s.t.Fatalf("reload: exit code %d, want %d; %v: %s%s", got, code, err, out, errs)
	}
	return read
}

// TestAlgorithmFilesAreReadAgainWithoutARestart adds, changes, breaks and removes files
// while jobs are queued.
func TestAlgorithmFilesAreReadAgainWithoutARestart(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: "[runner]\ncpus = 1\nsandbox = \"off\"\n"})
	u := s.user("lab", "ann@lab.example")
	if title := u.titleOf("say"); title != "" {
		t.Fatalf("it is on offer already: %s", title)
	}
	s.algorithmFile("say.toml", reloadable("1", "hello"))
	must.Equal(t, "a file is read before it is asked for", u.titleOf("say"), "")
	if read := s.reload(0); strings.Join(read.Added, ",") != "say 1" || len(read.Changed)+len(read.Removed)+len(read.Mistakes) != 0 {
		t.Errorf("added: %+v", read)
	}
	must.Equal(t, "after a reload", u.titleOf("say"), "Say hello")
	u.submit("first", "say", `{}`)

	s.algorithmFile("say.toml", reloadable("1", "goodbye"))
	must.OK(t, s.process.Process.Signal(syscall.SIGHUP))
	s.eventually("SIGHUP has its effect", func() bool { return u.titleOf("say") == "Say goodbye" })
	u.submit("second", "say", `{}`)

	s.algorithmFile("say.toml", "format = 1\ntype = \"say\"\nversion = \"1\"\ncomand = [\"true\"]\n")
	s.algorithmFile("other.toml", "format = 1\ntitle = 7\ntype = \"other\"\n")
	s.algorithmFile("good.toml", strings.Replace(reloadable("1", "good"), `"say"`, `"good"`, 1))
	read := s.reload(exitInvalid)
	if strings.Join(read.Added, ",") != "good 1" || len(read.Changed)+len(read.Removed) != 0 || len(read.Mistakes) < 2 {
		t.Errorf("of broken files: %+v", read)
	}
	kept := map[string]string{}
	for _, m := range read.Mistakes {
		kept[filepath.Base(m.File)] = m.Kept
		if m.Line < 1 || m.Message == "" {
			t.Errorf("%+v", m)
		}
	}
	if kept["say.toml"] != "say 1" || kept["other.toml"] != "" {
		t.Errorf("kept: %q", kept)
	}
	if u.titleOf("say") != "Say goodbye" || u.titleOf("good") != "Say good" || u.titleOf("other") != "" {
		t.Errorf("on offer: %q, %q, %q", u.titleOf("say"), u.titleOf("good"), u.titleOf("other"))
	}
	out, _, code := s.run("algorithms", "reload")
	if code != exitInvalid || !strings.Contains(out, "say.toml:4: ") || !strings.Contains(out, "(say 1 stays as it was)") || !strings.Contains(out, "(left out)") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if !strings.Contains(s.log.String(), "keeping the previous version") {
		t.Error("the log does not report the error")
	}
	if findings, _ := s.diagnosis(); !strings.Contains(findings["algorithms"], "the service keeps using say 1 as it was before until it restarts") {
		t.Errorf("doctor: %q", findings["algorithms"])
	}
	u.submit("third", "say", `{}`)

	must.OK(t, os.Remove(filepath.Join(s.dir, "algorithms", "say.toml")))
	if read := s.reload(exitInvalid); strings.Join(read.Removed, ",") != "say 1" || u.titleOf("say") != "" {
		t.Errorf("removed: %+v", read)
	}
	u.do("POST", "/submit-job", `{"jobName":"fourth","type":"say","settings":{}}`).detail("body.type")
	must.OK(t, os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600))
	for name, want := range map[string]string{"first": "hello\n", "second": "goodbye\n", "third": "goodbye\n"} {
		u.completed(name)
		u.wantResult(name, "word", want)
	}
	entries := s.ok("audit", "--action", "algorithms")
	if strings.Count(entries, "control socket") < 3 || !strings.Contains(entries, "SIGHUP") || !strings.Contains(entries, "1 added, 0 changed, 0 removed, 0 errors") {
		t.Errorf("the audit log has\n%s", entries)
	}
	must.OK(t, os.Rename(filepath.Join(s.dir, "algorithms"), filepath.Join(s.dir, "elsewhere")))
	if _, errs, code := s.run("algorithms", "reload"); code != exitInvalid || !strings.Contains(errs, "keeping the previous algorithms") || u.titleOf("good") == "" {
		t.Errorf("without the folder: exit code %d: %s", code, errs)
	}
	s.stop()
	s.fails(exitMissing, "it will load the algorithm files at startup", "algorithms", "reload")
}
