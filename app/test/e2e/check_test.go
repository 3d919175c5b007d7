package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/server/check"
	"molrun/app/server/datadir"
	"molrun/app/test/must"
)

// runCheck runs `molrun check --json` and returns its report and exit code.
func (s *instance) runCheck(args ...string) (c check.Report, code int) {
	s.t.Helper()
	out, errs, code := s.run(append([]string{"check", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		s.t.Fatalf("%v in %s%s", err, out, errs)
	}
	return c, code
}

func TestRepairRequiresAStoppedServiceAndQuarantinesOrphans(t *testing.T) {
	t.Parallel()
	s, u := serverWithFiles(t, 2)
	orphan := anUpload(t, s.data()) + "9" // a generation without a record
	must.OK(t, os.WriteFile(orphan, []byte("orphan"), 0o600))
	if c, code := s.runCheck(); code != 0 || len(c.Strays) > 0 {
		t.Errorf("a file that may be an upload in progress counts as an orphan: %+v, exit code %d", c, code)
	}
	if out, errs, code := s.run("check", "--repair"); code == 0 || !strings.Contains(errs, "stop it first") {
		t.Errorf("while the service runs: exit code %d: %s%s", code, out, errs)
	}
	s.stop()
	if c, code := s.runCheck(); code != 0 || len(c.Strays) != 1 || c.SetAside != "" {
		t.Errorf("without a service: %+v, exit code %d", c, code)
	}
	c, code := s.runCheck("--repair")
	if code != 0 || c.SetAside == "" {
		t.Fatalf("repair: %+v, exit code %d", c, code)
	}
	rest, err := filepath.Rel(s.data(), orphan)
	must.OK(t, err)
	if text, err := os.ReadFile(filepath.Join(s.data(), c.SetAside, rest)); err != nil || string(text) != "orphan" {
		t.Errorf("quarantined file: %q, %v", text, err)
	}
	s.start()
	if got := string(u.result("j", "name.txt")); got != "j\n" {
		t.Errorf("result after the repair: %q", got)
	}
}

// TestServiceStopsOnADamagedDatabase overwrites pages of the database while the
// service runs.
func TestServiceStopsOnADamagedDatabase(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	u := s.user("lab", "ann@lab.example")
	path := filepath.Join(s.data(), datadir.Database)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must.OK(t, err)
	_, err = f.WriteAt(make([]byte, sizeOfFile(t, path)-2*4096), 2*4096)
	must.OK(t, errors.Join(err, f.Close()))
	r, err := s.http.Get(s.base + "/readyz")
	if err == nil {
		r.Body.Close()
	}
	<-s.exited
	if code := s.process.ProcessState.ExitCode(); code != datadir.ExitDatabaseFailed || !strings.Contains(s.log.String(), "the database is damaged") {
		t.Errorf("service: exit code %d, key %s:\n%s", code, u.key, s.log.Tail())
	}
	if _, errs, code := s.run("check"); code == 0 || !strings.Contains(errs, "damaged") {
		t.Errorf("check: exit code %d: %s", code, errs)
	}
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
