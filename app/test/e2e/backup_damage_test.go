package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/server/backup"
	"molrun/app/test/must"
)

// storedFile returns the only file that matches, below the data directory.
func (s *instance) storedFile(pattern string) string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.data(), pattern))
	must.OK(s.t, err)
	if len(found) != 1 {
		s.t.Fatalf("%s matches %q", pattern, found)
	}
	return found[0]
}

// damagedBackup makes a backup that has to end with this exit code.
func (s *instance) damagedBackup(dir string, want int, flags ...string) (r backup.Record, said string) {
	s.t.Helper()
	out, said, code := s.run(append([]string{"backup", dir, "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != want {
		s.t.Fatalf("exit code %d, %v, want %d: %s%s", code, err, want, out, said)
	}
	return r, said
}

// What a backup takes from the one before, and what it can't, is the exit status.
func TestBackupReportsDamageThatItDoesNotHave(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "")
	u := s.user("lab", "ann@lab.example")
	missing := u.upload("missing.txt", "this file goes missing\n")
	dir := filepath.Join(t.TempDir(), "backups")
	s.backup(dir)
	must.OK(t, os.Remove(s.storedFile("uploads/*/"+missing+".*")))
	for _, state := range []string{"running", "stopped"} {
		r, said := s.damagedBackup(dir, exitDamaged)
		if len(r.Damaged) != 1 || !strings.Contains(said, missing) || !strings.Contains(said, "the backup is complete") {
			t.Errorf("service %s: damage %q; said %s", state, r.Damaged, said)
		}
		verifyBackup(t, dir, r.Name)
		if state == "running" {
			s.stop()
		}
	}
	if r, said := s.damagedBackup(filepath.Join(t.TempDir(), "other"), exitFailed); len(r.Problems) != 1 || len(r.Damaged) > 0 {
		t.Errorf("without an earlier backup: %+v\n%s", r, said)
	}
}
