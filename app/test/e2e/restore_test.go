package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/job/audit"
	"molrun/app/server/backup"
	"molrun/app/test/must"
)

func TestRestoreRequiresAnEmptyDirectoryAndAnIntactBackup(t *testing.T) {
	t.Parallel()
	s, _ := serverWithFiles(t, 2)
	dir := filepath.Join(t.TempDir(), "backups")
	first := s.backup(dir)
	s.stop()
	second := s.backup(dir) // the service is stopped
	fails := func(says string, args ...string) {
		t.Helper()
		if out, errs, code := s.run(args...); code == 0 || !strings.Contains(errs, says) {
			t.Errorf("molrun %s: exit code %d: %s%s; want %q", strings.Join(args, " "), code, out, errs, says)
		}
	}
	fails("not empty", "restore", dir)
	fails("--list shows", "restore", dir, "--snapshot", "nonsense", "--data", filepath.Join(t.TempDir(), "new"))
	fails("lies in the data directory", "backup", filepath.Join(s.data(), "backups"))
	if list := s.ok("restore", dir, "--list"); !strings.Contains(list, first.Name) || !strings.Contains(list, second.Name) {
		t.Errorf("--list printed %s", list)
	}

	// The two backups share their files, so that damage is in both. Only reading the
	// file again finds it.
	upload := anUpload(t, filepath.Join(dir, second.Name, "data"))
	must.OK(t, os.WriteFile(upload, []byte(strings.Repeat("x", int(sizeOfFile(t, upload)))), 0o600))
	data := filepath.Join(t.TempDir(), "new")
	fails("is damaged", "restore", dir, "--data", data)
	fails("restored but for", "restore", dir, "--data", data, "--skip-damaged")
	out, errs, code := s.run("backup", dir, "--deep")
	if code != exitFailed || !strings.Contains(errs, "damaged") {
		t.Errorf("backup --deep: exit code %d: %s%s", code, out, errs)
	}
	names, err := backup.Dir(dir).Names()
	must.OK(t, err)
	repaired := filepath.Join(t.TempDir(), "repaired")
	s.ok("restore", dir, "--data", repaired, "--snapshot", names[len(names)-1])
	s.checkClean(repaired)
}

func anUpload(t *testing.T, data string) (path string) {
	t.Helper()
	must.OK(t, eachFile(filepath.Join(data, "uploads"), func(p string) error { path = p; return nil }))
	if path == "" {
		t.Fatalf("no uploads in %s", data)
	}
	return path
}

func sizeOfFile(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must.OK(t, err)
	return info.Size()
}

func TestBackupKeepsSecretsPrivate(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	s.ok("key", "create", "--organization", "lab", "--email", "ann@lab.example")
	must.OK(t, os.Mkdir(filepath.Join(s.data(), "tls"), 0o700))
	s.certificate("data/tls/cert.pem", "data/tls/key.pem", time.Now()) // as created by the service
	before := map[string]string{}
	for _, name := range []string{"secret", audit.Name, "tls/cert.pem", "tls/key.pem"} {
		text, err := os.ReadFile(filepath.Join(s.data(), name))
		must.OK(t, err)
		before[name] = string(text)
	}
	dir := filepath.Join(t.TempDir(), "backups")
	r := s.backup(dir)
	data := filepath.Join(t.TempDir(), "new")
	s.ok("restore", dir, "--data", data)
	for _, top := range []string{filepath.Join(dir, r.Name), data} {
		must.OK(t, filepath.WalkDir(top, func(path string, e os.DirEntry, err error) error {
			must.OK(t, err)
			info, err := e.Info()
			must.OK(t, err)
			if info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s is open to others: %v", path, info.Mode())
			}
			return nil
		}))
	}
	for name, want := range before { // the audit log also has the restore
		if got, err := os.ReadFile(filepath.Join(data, name)); err != nil || want == "" || !strings.HasPrefix(string(got), want) {
			t.Errorf("%s differs: %v", name, err)
		}
	}
}
