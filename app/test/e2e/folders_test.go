package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/cluster"
	"molrun/app/test/must"
)

// folderFiles has an algorithm with its own directory. Its script prints the word in that
// directory, waits for a gate, prints the word again, and tries to change it, except as
// root outside a sandbox, where nothing would prevent that.
var folderFiles = map[string]string{
	"shell.toml": shellFile,
	"words/algorithm.toml": `
format = 1
type = "words"
version = "1"
retries = 1
version_command = ["{folder}/tell.sh", "--version"]
version_pattern = 'tell (\S+)'

[[steps]]
name = "tell"
command = ["{folder}/tell.sh", "{folder}", "{settings.gate}", "{out}/told.txt"]
makes = ["{out}/told.txt"]

[[parameters]]
name = "gate"
type = "string"
default = "/"

[[parameters]]
name = "check"
type = "string"
default = "good"

[validate]
command = ["{folder}/check.sh", "{folder}/bad.txt", "{settings.check}"]

[resources]
memory = "64MiB"

[sandbox]
read = ["@DIR@/gates"]
`,
	"words/tell.sh":      "#!/bin/sh\n[ \"$1\" = --version ] && echo tell 7.1 && exit 1\ncat \"$1/lib/word.txt\" > \"$3\"\necho told\nuntil [ -e \"$2\" ]; do sleep 0.05; done\ncat \"$1/lib/word.txt\" >> \"$3\"\nif [ ! -e /etc/shadow ] || [ \"$(id -u)\" != 0 ]; then\n(echo changed > \"$1/lib/word.txt\") 2>/dev/null\n(echo new > \"$1/lib/new.txt\") 2>/dev/null\nfi\ncat \"$1\"/lib/* >> \"$3\"\n",
	"words/check.sh":     "#!/bin/sh\nif grep -q \"$2\" \"$1\"; then echo '[{\"loc\":[\"check\"],\"msg\":\"is a bad word\"}]'; else echo '[]'; fi\n",
	"words/bad.txt":      "bad\nworse\n",
	"words/lib/word.txt": "one\n",
}

// TestJobsGoOnWithTheFolderThatTheyWereSubmittedWith edits the algorithm's directory and
// restarts the service while one job runs and another is queued.
func TestJobsGoOnWithTheFolderThatTheyWereSubmittedWith(t *testing.T) {
	t.Parallel()
	for _, sandbox := range []string{"auto", "off"} {
		t.Run("sandbox "+sandbox, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, serverOptions{config: fmt.Sprintf("[runner]\ncpus = 1\nsandbox = %q\n", sandbox), algorithms: folderFiles})
			u := s.user("lab", "ann@lab.example")
			gate := s.gate("go")
			settings := fmt.Sprintf(`{"gate":%q}`, string(gate))
			u.submit("runs", "words", settings)
			u.until("runs", "waiting for its gate", func(record) bool {
				return string(u.do("GET", "/jobs/runs/logs", nil).body) == "told\n"
			})
			u.submit("waits", "words", settings)

			s.algorithmFile("words/lib/word.txt", "two\n")
			s.kill()
			s.start()
			u.submit("new", "words", settings)
			must.OK(t, os.RemoveAll(filepath.Join(s.dir, "algorithms", "words")))
			s.stop()
			s.start()
			gate.open(t)
			for name, word := range map[string]string{"runs": "one\n", "waits": "one\n", "new": "two\n"} {
				u.completed(name)
				u.wantResult(name, "told.txt", word+word+word)
			}
		})
	}
}

func TestFolderOfAnAlgorithmServesItsValidator(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{algorithms: folderFiles})
	u := s.user("lab", "ann@lab.example")
	u.do("POST", "/submit-job", `{"jobName":"a","type":"words","settings":{"check":"worse"}}`).detail("body.settings.check")
	u.submit("b", "words", `{"check":"fine"}`)
	if j := u.finished("b"); j.Status != "COMPLETED" || j.ProgramVersion != "7.1" {
		t.Errorf("%+v", j)
	}
	must.Contain(t, "job.json", string(u.result("b", "job.json")), `"programVersion":"7.1"`)
}

// TestBackupHasTheFoldersOfUnfinishedJobs restores a queued job whose algorithm's
// directory has been removed from the site.
func TestBackupHasTheFoldersOfUnfinishedJobs(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{config: "[runner]\ncpus = 1\n", algorithms: folderFiles})
	u := s.user("lab", "ann@lab.example")
	block := s.blockCPU("block")
	u.submit("waits", "words", "{}")
	backups := filepath.Join(t.TempDir(), "backups")
	s.backup(backups)
	must.OK(t, os.RemoveAll(filepath.Join(s.dir, "algorithms", "words")))
	s.stop()
	s.killTasks()
	block.open(t)

	data := filepath.Join(t.TempDir(), "data")
	s.ok("restore", backups, "--data", data)
	s.checkClean(data)
	other := s.startOn(data)
	again := user{other, u.key}
	again.completed("waits")
	again.wantResult("waits", "told.txt", strings.Repeat("one\n", 3))
	other.stop()

	// Damage to a file that a job needs is detected.
	word, err := filepath.Glob(filepath.Join(s.data(), "algorithms", "*", "lib", "word.txt"))
	if err != nil || len(word) != 1 {
		t.Fatal(word, err)
	}
	must.OK(t, os.Chmod(word[0], 0o600))
	must.OK(t, os.WriteFile(word[0], []byte("own\n"), 0o600))
	if c, code := s.runCheck("--deep"); code != exitFailed || c.Count != 1 || !strings.Contains(c.Problems[0].Text, "lib/word.txt") {
		t.Errorf("check: %+v, exit code %d", c, code)
	}
}

// foldersReachTheNodes runs a job of an algorithm with its own directory on the cluster.
func foldersReachTheNodes(t *testing.T, c *cluster.Cluster) {
	s := clusterServer(t, c, "", serverOptions{config: everywhere, algorithms: folderFiles})
	u := s.user("lab", "ann@lab.example")
	u.submit("far", "words", "{}")
	if j := u.finished("far"); j.Status != "COMPLETED" || j.Executor != "slurm" || string(u.result("far", "told.txt")) != strings.Repeat("one\n", 3) {
		t.Errorf("%+v", j)
	}
	if kept, _ := filepath.Glob(filepath.Join(s.shared, "algorithms", "*", "tell.sh")); len(kept) != 1 {
		t.Errorf("the shared folder has %q", kept)
	}
}
