package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/server/backup"
	"molrun/app/test/must"
)

// A service takes a backup when one is due, restores it as a test, removes old ones, and
// reports all that. It does not write to the mount point of an unmounted disk.
func TestServiceTakesBackupsItself(t *testing.T) {
	t.Parallel()
	s, u := serverWithFiles(t, 2)
	dir := filepath.Join(t.TempDir(), "backups")
	if _, errs, code := s.run("backup", dir, "--marked"); code == 0 || !strings.Contains(errs, "has no backups; mount its disk") {
		t.Errorf("into a directory without backups: exit code %d: %s", code, errs)
	}
	if _, errs, code := s.run("backup", dir); code != 0 || !strings.Contains(errs, "has no backups yet; making a first, full backup") {
		t.Errorf("the first backup: exit code %d: %s", code, errs)
	}
	names, err := backup.Dir(dir).Names()
	must.OK(t, err)
	for n, old := range []string{"20200101T000000Z", "20200101T010000Z"} {
		must.OK(t, exec.Command("cp", "-al", filepath.Join(dir, names[0]), filepath.Join(dir, old)).Run())
		date(t, dir, old, time.Date(2020, 1, 1, n, 0, 0, 0, time.UTC))
	}
	must.OK(t, os.RemoveAll(filepath.Join(dir, names[0])))
	u.upload("new.txt", "new")
	s.stop()
	s.env = append(s.env, "MOLRUN_BACKUP_TO="+dir, "MOLRUN_BACKUP_EVERY=10m", "MOLRUN_BACKUP_KEEP=2d")
	s.start()
	s.eventually("a backup is taken and tried", func() bool {
		tried, err := backup.Dir(dir).LastTest()
		must.OK(t, err)
		return tried != nil
	})
	newest, err := backup.Dir(dir).Newest()
	must.OK(t, err)
	if newest.Uploads != 3 || len(newest.Problems) > 0 || newest.Linked == 0 {
		t.Errorf("the backup: %+v", newest)
	}
	if names, err = backup.Dir(dir).Names(); err != nil || len(names) != 2 || names[0] != "20200101T010000Z" {
		t.Errorf("%q are left, %v; the last of each of two days stay", names, err)
	}
	if tried, err := backup.Dir(dir).LastTest(); err != nil || tried.Backup != newest.Name || len(tried.Problems) > 0 {
		t.Errorf("the trial: %+v, %v", tried, err)
	}
	for _, series := range ofBackup {
		s.eventually("the metrics have "+series, func() bool { _, known := s.scrape().values[series]; return known })
	}
	s.shows(map[string]float64{
		"molrun_backup_last_success_timestamp_seconds": float64(newest.TakenAt.Unix()), "molrun_backup_size_bytes": float64(newest.Bytes),
		"molrun_backup_directory_present": 1, "molrun_backup_interval_seconds": 600, "molrun_backup_trial_success": 1, "molrun_backup_failures_total": 0,
	})
	doctor := func(want string) {
		t.Helper()
		if out, _, _ := s.run("doctor"); !strings.Contains(out, want) {
			t.Errorf("doctor says %s, want %q", out, want)
		}
	}
	doctor("the newest is from ")
	date(t, dir, newest.Name, newest.TakenAt.Add(-time.Hour))
	doctor("though one is due every 10m0s")
	s.stop()
	must.OK(t, os.Rename(dir, dir+".elsewhere"))
	must.OK(t, os.Mkdir(dir, 0o700)) // an empty mount point
	s.start()
	s.eventually("it says so", func() bool { return strings.Contains(s.log.String(), "the backup directory is unavailable") })
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the mount point has %d entries, %v", len(entries), err)
	}
	s.shows(map[string]float64{"molrun_backup_directory_present": 0})
	doctor("mount its disk")
}

// date changes the time in a backup's record at which it was taken.
func date(t *testing.T, dir, name string, taken time.Time) {
	t.Helper()
	path := filepath.Join(dir, name, "backup.json")
	text := must.Read(t, path)
	record, err := backup.Dir(dir).Record(name)
	must.OK(t, err)
	at, err := record.TakenAt.MarshalText()
	must.OK(t, err)
	must.OK(t, os.WriteFile(path+".new", []byte(strings.Replace(text, string(at), taken.Format(time.RFC3339), 1)), 0o600))
	must.OK(t, os.Rename(path+".new", path))
}

// A second machine that pulls backups while they are being taken gets only complete ones.
func TestBackupsCanBePulledByRsync(t *testing.T) {
	t.Parallel()
	rsync := must.Installed(t, "rsync")
	s, u := serverWithFiles(t, 20)
	dir, pulled := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "pulled")
	s.backup(dir)
	for round := range 4 {
		u.upload(strings.Repeat("n", round+1)+".txt", strings.Repeat("x", 100_000))
		c := s.command("backup", dir, "--keep", "1d")
		must.OK(t, c.Start())
		// rsync exits with 0 unless a file has vanished during the pull, as the files of
		// an expired backup can.
		pull := []string{"-aH", "--delete", "--exclude=/partial", "--exclude=/trial", "--exclude=/going-*", dir + "/", pulled + "/"}
		out, err := exec.Command(rsync, pull...).CombinedOutput()
		for tries := 0; err != nil && strings.Contains(string(out), "vanished") && tries < 5; tries++ {
			out, err = exec.Command(rsync, pull...).CombinedOutput()
		}
		if err != nil {
			t.Fatalf("rsync: %v\n%s", err, out)
		}
		must.OK(t, c.Wait())
		names, err := backup.Dir(pulled).Names()
		must.OK(t, err)
		if len(names) == 0 {
			t.Fatal("nothing was pulled")
		}
		newest := names[len(names)-1]
		s.ok("restore", pulled, "--snapshot", newest, "--data", filepath.Join(t.TempDir(), "restored"))
	}
}
