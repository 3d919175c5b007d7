package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"

	bolt "go.etcd.io/bbolt"
)

// countFile is the algorithm with which testdata/released/record.sh counts words.
const countFile = `
format = 1
type = "count"
version = "1"
max_runtime = "10m"

[[parameters]]
name = "text"
file = [".txt"]
required = true

[[steps]]
name = "count"
command = ["wc", "-w", "{files.text}"]
stdout = "{out}/words.txt"

[metrics]
words = { file = "words.txt", pattern = '^\\s*([0-9]+)' }
`

// released returns the data directories that versions have left, unpacked.
func released(t *testing.T) map[string]string {
	t.Helper()
	packed, err := filepath.Glob("testdata/released/*.tar.gz")
	must.OK(t, err)
	if len(packed) < 2 {
		t.Fatalf("only %q are recorded", packed)
	}
	all := map[string]string{}
	for _, file := range packed {
		dir := t.TempDir()
		must.OK(t, os.Chmod(dir, 0o700))
		must.OK(t, exec.Command("tar", "-xzf", file, "-C", dir).Run())
		all[strings.TrimSuffix(filepath.Base(file), ".tar.gz")] = dir
	}
	return all
}

// Whatever a version has left is there in this one: jobs, results, uploads, keys, what was
// waiting, and that no jobs were to start.
func TestDataOfReleasedVersionsOpens(t *testing.T) {
	t.Parallel()
	for version, data := range released(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, serverOptions{algorithms: map[string]string{"count.toml": countFile}}).startOn(data)
			u := user{s, strings.TrimSpace(readFile(t, filepath.Join(data, "KEY")))}
			for name, want := range map[string]string{"counted": "COMPLETED", "folded": "COMPLETED", "failed": "FAILED", "both": "COMPLETED", "waiting": "QUEUED"} {
				if j := u.job(name); j.Status != want {
					t.Errorf("%s is %s, want %s", name, j.Status, want)
				}
			}
			if got := string(u.result("counted", "words.txt")); !strings.HasPrefix(strings.TrimSpace(got), "3") {
				t.Errorf("the result of counted is %q", got)
			}
			if got := u.result("folded", "seq1/top.pdb"); !strings.Contains(string(got), " CA  ALA A   1 ") {
				t.Errorf("the result of folded is %q", got)
			}
			s.ok("resume", "--data", data)
			if j := u.finished("waiting"); j.Status != "COMPLETED" || j.Metrics.Results["words"] != 3.0 {
				t.Errorf("what waited: %+v", j)
			}
			s.stop()
			must.OK(t, os.Remove(filepath.Join(data, "KEY")))
			s.checkClean(data)
		})
	}
}

// A version does not open what a later one has written, and leaves it as it is.
func TestDataOfALaterVersionIsRefused(t *testing.T) {
	t.Parallel()
	data := released(t)["schema-5"]
	file := filepath.Join(data, "jobs.db")
	db, err := bolt.Open(file, 0o600, nil)
	must.OK(t, err)
	must.OK(t, db.Update(func(tx *bolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("schema"), []byte("99")) }))
	must.OK(t, db.Close())
	before := readFile(t, file)
	s := unstarted(t, "")
	for _, args := range [][]string{
		{"serve", "--data", data, "--listen", "127.0.0.1:0"},
		{"check", "--data", data},
		{"backup", filepath.Join(t.TempDir(), "b"), "--data", data},
		{"key", "list", "--data", data},
		{"compact", "--data", data},
	} {
		if out, errs, code := s.run(args...); code == 0 || !strings.Contains(errs, "99") || !strings.Contains(errs, "newer") {
			t.Errorf("molrun %s: exit code %d: %s%s", args[0], code, out, errs)
		}
	}
	if readFile(t, file) != before {
		t.Error("the database was changed")
	}
}
