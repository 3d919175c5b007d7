package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/backup"
)

// storedFile returns the only file that matches, below the data directory.
func (s *instance) storedFile(pattern string) string {
	s.t.Helper()
	found, err := filepath.Glob(filepath.Join(s.data(), pattern))
	must(s.t, err)
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

// A backup takes what is missing or altered in the data directory from the one
// before, and says so.
func TestBackupReportsDamageThatItDoesNotHave(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "")
	u := s.user("lab", "ann@lab.example")
	missing := u.upload("missing.txt", "this file goes missing\n")
	shorter := u.upload("shorter.txt", "this file gets shorter\n")
	u.submit("j", "shell", script("echo result > out/altered.txt; echo result > out/sound.txt"))
	u.finished("j")
	dir := filepath.Join(t.TempDir(), "backups")
	s.backup(dir)
	again := s.backup(dir)
	if len(again.Damaged)+len(again.Problems) > 0 {
		t.Fatalf("a sound directory: %+v", again)
	}

	altered := s.storedFile("jobs/*/result/altered.txt")
	before, err := os.Stat(altered)
	must(t, err)
	must(t, errors.Join(
		os.Remove(s.storedFile("uploads/*/"+missing+".*")),
		os.Truncate(s.storedFile("uploads/*/"+shorter+".*"), 5),
		os.WriteFile(altered, []byte("RESULT\n"), 0o600),
	))
	want := []string{missing, shorter, "altered.txt"}
	for _, state := range []string{"running", "stopped"} {
		r, said := s.damagedBackup(dir, exitDamaged)
		for i, name := range want {
			if len(r.Damaged) != len(want) || !strings.Contains(strings.Join(r.Damaged, "\n"), name) || !strings.Contains(said, name) {
				t.Errorf("service %s: damage %q, want %d with %s; said %s", state, r.Damaged, i, name, said)
			}
		}
		if len(r.Problems) > 0 || !strings.Contains(said, "the backup is complete") || r.Files != again.Files {
			t.Errorf("service %s: %+v\n%s", state, r, said)
		}
		verifyBackup(t, dir, r.Name)
		if state == "running" {
			s.stop()
		}
	}
	restored := filepath.Join(t.TempDir(), "restored")
	s.ok("restore", dir, "--data", restored)
	s.checkClean(restored)
	if _, errs, code := s.run("check", "--deep"); code != exitFailed {
		t.Errorf("check of the damaged directory: exit code %d: %s", code, errs)
	}

	// A change that keeps size and time is found by reading only.
	must(t, os.Chtimes(altered, time.Time{}, before.ModTime()))
	if r, _ := s.damagedBackup(dir, exitDamaged); len(r.Damaged) != 2 {
		t.Errorf("with the old time: damage %q, want the two uploads", r.Damaged)
	}
	if r, _ := s.damagedBackup(dir, exitDamaged, "--deep"); len(r.Damaged) != 3 {
		t.Errorf("--deep: damage %q, want all three", r.Damaged)
	}
	if r, said := s.damagedBackup(filepath.Join(t.TempDir(), "other"), exitFailed); len(r.Problems) != 3 || len(r.Damaged) > 0 {
		t.Errorf("without an earlier backup: %+v\n%s", r, said)
	}
}

// A copied data directory has new times; its files are read once.
func TestBackupOfFilesWithOtherTimesIsClean(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "")
	u := s.user("lab", "ann@lab.example")
	id := u.upload("a.txt", "text\n")
	dir := filepath.Join(t.TempDir(), "backups")
	s.backup(dir)
	file := s.storedFile("uploads/*/" + id + ".*")
	now := time.Now().Add(time.Hour).Truncate(time.Second)
	must(t, os.Chtimes(file, now, now))
	r := s.backup(dir)
	if len(r.Damaged)+len(r.Problems) > 0 {
		t.Errorf("%+v", r)
	}
	copied := filepath.Join(dir, r.Name, "data", "uploads", filepath.Base(filepath.Dir(file)), filepath.Base(file))
	if info, err := os.Stat(copied); err != nil || !info.ModTime().Equal(now) {
		t.Errorf("the copy keeps another time, so each backup reads the file: %v, %v", info, err)
	}
}
