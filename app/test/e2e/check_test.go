package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/server/check"
	"molrun/app/server/host"
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

// TestServiceStopsOnADamagedDatabase overwrites pages of the database while the
// service runs.
func TestServiceStopsOnADamagedDatabase(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	u := s.user("lab", "ann@lab.example")
	path := filepath.Join(s.data(), host.Database)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must.OK(t, err)
	_, err = f.WriteAt(make([]byte, sizeOfFile(t, path)-2*4096), 2*4096)
	must.OK(t, errors.Join(err, f.Close()))
	r, err := s.http.Get(s.base + "/readyz")
	if err == nil {
		r.Body.Close()
	}
	<-s.exited
	if code := s.process.ProcessState.ExitCode(); code != host.ExitDatabaseFailed || !strings.Contains(s.log.String(), "the database is damaged") {
		t.Errorf("service: exit code %d, key %s:\n%s", code, u.key, s.log.Tail())
	}
	if _, errs, code := s.run("check"); code == 0 || !strings.Contains(errs, "damaged") {
		t.Errorf("check: exit code %d: %s", code, errs)
	}
}

func sizeOfFile(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must.OK(t, err)
	return info.Size()
}
