package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/check"
	"molrun/app/datadir"
)

// checked runs a check and gives what it found.
func (s *instance) checked(args ...string) (c check.Report, code int) {
	s.t.Helper()
	out, errs, code := s.run(append([]string{"check", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		s.t.Fatalf("%v in %s%s", err, out, errs)
	}
	return c, code
}

func TestCheckFindsMissingAndDamagedFiles(t *testing.T) {
	t.Parallel()
	s, u := fullServer(t, 3)
	job := filepath.Join(s.data(), "jobs", u.job("j").JobID)
	result := filepath.Join(job, "result", "name.txt")
	upload := anUpload(t, s.data())
	overwritten := func(path string) func() error {
		return func() error { return os.WriteFile(path, []byte(strings.Repeat("x", int(sizeOfFile(t, path)))), 0o600) }
	}
	for _, tt := range []struct {
		name, says string
		deep       bool // found by --deep alone
		file       string
		spoil      func() error
	}{
		{"a missing upload", "no such file", false, upload, func() error { return os.Remove(upload) }},
		{"a short upload", "bytes, its record says", false, upload, func() error { return os.Truncate(upload, 3) }},
		{"an altered upload", "other bytes than were stored", true, upload, overwritten(upload)},
		{"a missing result", "no such file", false, result, func() error { return os.Remove(result) }},
		{"an altered result", "other bytes than were stored", true, result, overwritten(result)},
		{"a link in a file's place", "no regular file", false, result, func() error {
			return errors.Join(os.Remove(result), os.Symlink("/etc/hostname", result))
		}},
		{"a missing manifest", "manifest", false, filepath.Join(job, "manifest.json"), func() error {
			return os.Remove(filepath.Join(job, "manifest.json"))
		}},
		{"a missing secret", "secret", false, filepath.Join(s.data(), "secret"), func() error {
			return os.Remove(filepath.Join(s.data(), "secret"))
		}},
	} {
		good, err := os.ReadFile(tt.file)
		must(t, err)
		must(t, tt.spoil())
		shallow, _ := s.checked()
		deep, code := s.checked("--deep")
		if code != exitFailed || deep.Count == 0 || !strings.Contains(deep.Problems[0].Text, tt.says) || (shallow.Count == 0) != tt.deep {
			t.Errorf("%s: %d problems, by --deep %+v, ended with %d; want %q", tt.name, shallow.Count, deep.Problems, code, tt.says)
		}
		_ = os.Remove(tt.file) // where it is there
		must(t, os.WriteFile(tt.file, good, 0o600))
	}
	if c, code := s.checked("--deep"); code != 0 || c.Files < 8 || c.Jobs != 1 || c.Uploads != 3 || c.Keys != 1 {
		t.Errorf("with all files as they were: %+v, ended with %d", c, code)
	}
}

func TestRepairRequiresAStoppedServiceAndQuarantinesOrphans(t *testing.T) {
	t.Parallel()
	s, u := fullServer(t, 2)
	stray := anUpload(t, s.data()) + "9" // a generation that no record names
	must(t, os.WriteFile(stray, []byte("stray"), 0o600))
	if c, code := s.checked(); code != 0 || len(c.Strays) > 0 {
		t.Errorf("what may be on its way counts as a stray: %+v, ended with %d", c, code)
	}
	if out, errs, code := s.run("check", "--repair"); code == 0 || !strings.Contains(errs, "stop it first") {
		t.Errorf("beside a service it ended with %d: %s%s", code, out, errs)
	}
	s.stop()
	if c, code := s.checked(); code != 0 || len(c.Strays) != 1 || c.SetAside != "" {
		t.Errorf("without a service: %+v, ended with %d", c, code)
	}
	c, code := s.checked("--repair")
	if code != 0 || c.SetAside == "" {
		t.Fatalf("repair: %+v, ended with %d", c, code)
	}
	rest, err := filepath.Rel(s.data(), stray)
	must(t, err)
	if text, err := os.ReadFile(filepath.Join(s.data(), c.SetAside, rest)); err != nil || string(text) != "stray" {
		t.Errorf("set aside: %q, %v", text, err)
	}
	s.start()
	if got := string(u.result("j", "name.txt")); got != "j\n" {
		t.Errorf("a result afterwards: %q", got)
	}
}

// TestServiceStopsOnADamagedDatabase overwrites the pages below a service.
func TestServiceStopsOnADamagedDatabase(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	u := s.user("lab", "ann@lab.example")
	path := filepath.Join(s.data(), datadir.Database)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(make([]byte, sizeOfFile(t, path)-2*4096), 2*4096)
	must(t, errors.Join(err, f.Close()))
	r, err := s.http.Get(s.base + "/readyz")
	if err == nil {
		r.Body.Close()
	}
	<-s.exited
	if code := s.process.ProcessState.ExitCode(); code != datadir.ExitDatabaseFailed || !strings.Contains(s.log.String(), "the database is damaged") {
		t.Errorf("the service ended with %d, key %s:\n%s", code, u.key, s.tail())
	}
	if _, errs, code := s.run("check"); code == 0 || !strings.Contains(errs, "damaged") {
		t.Errorf("check ended with %d: %s", code, errs)
	}
}
