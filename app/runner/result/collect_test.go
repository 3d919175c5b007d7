package result

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/base/fault"
	"molrun/app/task"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
	"molrun/blobs"
	"molrun/blobs/link"
)

// site is a job's directory with a finished attempt.
type site struct {
	t     *testing.T
	files *blobs.Dir
	dir   string
}

func newSite(t *testing.T, attempt int) *site {
	t.Helper()
	data := t.TempDir()
	must.OK(t, os.Chmod(data, 0o700))
	secret, err := link.LoadSecret(data)
	must.OK(t, err)
	files, err := blobs.Open(data, blobs.Options{Now: time.Now, Secret: secret, Log: zerolog.Nop()})
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, files.Close()) })
	s := &site{t, files, files.JobDir("J")}
	for _, sub := range []string{task.InDir, task.OutDir, task.TempDir} {
		must.OK(t, os.MkdirAll(filepath.Join(s.dir, fmt.Sprint(attempt), task.WorkDir, sub), 0o700))
	}
	return s
}

// out returns a path in the output folder of the first attempt.
func (s *site) out(name string) string {
	return filepath.Join(s.dir, "1", task.WorkDir, task.OutDir, name)
}

func (s *site) write(name, text string) {
	s.t.Helper()
	must.Write(s.t, s.out(name), text)
}

func (s *site) collection() *Collection {
	return &Collection{
		Job:       "J",
		Dir:       s.dir,
		Attempt:   1,
		Outcome:   &app.Outcome{Cause: app.CauseDone, EndedAt: time.Unix(1e9, 0)},
		Algorithm: plainAlgorithm(s.t),
		MaxFiles:  100,
		Manifests: s.files,
		Record: func(e app.Ending) (app.Record, error) {
			return json.Marshal(map[string]any{"jobId": "J", "resultBytes": e.ResultBytes, "results": e.Results})
		},
		Check: goOn,
		Log:   zerolog.Nop(),
	}
}

func goOn() error { return nil }

// result returns the collected files by name.
func (s *site) result() map[string]string {
	s.t.Helper()
	m, err := s.files.Manifest("J")
	must.OK(s.t, err)
	return fixture.ReadResult(s.t, s.dir, m)
}

// plainAlgorithm declares only a program, so its metrics come from metrics.json.
func plainAlgorithm(t testing.TB) *algorithm.File {
	t.Helper()
	a, mistakes := algorithm.Parse("sim.toml", []byte("format = 1\ntype = \"sim\"\nversion = \"1\"\ntitle = \"Pretend\"\ncommand = [\"true\"]\n"))
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	return a
}

// leftOut returns the log text for these paths.
func leftOut(lines ...string) string {
	return "molrun: left out of the result:\n  " + strings.Join(lines, "\n  ") + "\n"
}

func TestCollect(t *testing.T) {
	tests := []struct {
		name  string
		leave func(s *site)
		want  map[string]string // in addition to job.json
		bytes int64
	}{
		{"nothing", func(*site) {}, map[string]string{"log.txt": ""}, 0},
		{"nested", func(s *site) {
			s.write("a/b/c.txt", "c")
			s.write("a.txt", "a")
			must.OK(s.t, os.WriteFile(filepath.Join(s.dir, "1", task.LogFile), []byte("said"), 0o600))
		}, map[string]string{"a/b/c.txt": "c", "a.txt": "a", "log.txt": "said"}, 2},
		{"empty directory and file", func(s *site) {
			must.OK(s.t, os.MkdirAll(s.out("empty/er"), 0o700))
			s.write("none", "")
		}, map[string]string{"none": "", "log.txt": ""}, 0},
		{"links", func(s *site) {
			s.write("real", "x")
			must.OK(s.t, os.Symlink("/etc/passwd", s.out("absolute")))
			must.OK(s.t, os.Symlink("../../../..", s.out("up")))
			must.OK(s.t, os.Symlink("real", s.out("alias")))
			must.OK(s.t, os.Link(s.out("real"), s.out("hard")))
		}, map[string]string{"real": "x", "alias": "x", "hard": "x", "log.txt": leftOut("absolute: "+linkOutside, "up: "+linkOutside)}, 3},
		{"devices", func(s *site) {
			must.OK(s.t, syscall.Mkfifo(s.out("metrics.json"), 0o600))
			s.write("d/ok", "1")
			must.OK(s.t, syscall.Mkfifo(s.out("d/fifo"), 0o600))
			must.OK(s.t, bindSocket(s.out("d/socket")))
		}, map[string]string{"d/ok": "1", "log.txt": leftOut("d/fifo: a pipe", "d/socket: a socket", "metrics.json: a pipe")}, 1},
		{"reserved names", func(s *site) {
			s.write("job.json", "mine")
			s.write("log.txt", "mine too")
			s.write("manifest.json", "mine three")
			s.write("sub/job.json", "far")
		}, map[string]string{
			"output/job.json": "mine", "output/log.txt": "mine too", "manifest.json": "mine three", "sub/job.json": "far", "log.txt": "",
		}, 25},
		{"reserved names, taken", func(s *site) {
			s.write("job.json", "a")
			s.write("output/job.json", "b")
			s.write("log.txt", "c")
		}, map[string]string{"output~2/job.json": "a", "output/job.json": "b", "output/log.txt": "c", "log.txt": ""}, 3},
		{"a file in place of the directory", func(s *site) {
			s.write("job.json", "a")
			s.write("output", "b")
		}, map[string]string{"output~2/job.json": "a", "output": "b", "log.txt": ""}, 2},
		{"folders of reserved names", func(s *site) {
			s.write("job.json/a", "1")
			s.write("job.json/b", "2")
			s.write("LOG.TXT", "3")
			s.write("output/job.json/a", "4")
		}, map[string]string{
			"output~2/job.json/a": "1", "output~2/job.json/b": "2", "output/LOG.TXT": "3", "output/job.json/a": "4", "log.txt": "",
		}, 4},
		{"a decomposed name", func(s *site) {
			s.write("pru\u0308f", "1")
			s.write("u\u0308", "2")
			s.write("ü", "3")
			must.OK(s.t, os.Symlink("u\u0308", s.out("link")))
		}, map[string]string{"prüf": "1", "ü~2": "2", "ü": "3", "link": "2", "log.txt": ""}, 4},
		{"names that an archive cannot hold", func(s *site) {
			s.write("a\xffb", "1")
			s.write("a%FFb", "2")
			s.write("bad\xfe/x\n", "3")
			s.write(`..\..\evil`, "4")
			s.write(strings.Repeat("\xff", 200), "5")
			s.write("über", "6")
		}, map[string]string{
			"a%FFb~2": "1", "a%FFb": "2", "bad%FE/x%0A": "3", "..%5C..%5Cevil": "4",
			strings.Repeat("%FF", 82) + "%": "5", "über": "6", "log.txt": "",
		}, 6},
		{"closed modes", func(s *site) {
			s.write("d/f", "x")
			must.OK(s.t, os.Chmod(s.out("d/f"), 0))
			must.OK(s.t, os.Chmod(s.out("d"), 0))
			must.OK(s.t, os.Chmod(s.out("."), 0o500))
		}, map[string]string{"d/f": "x", "log.txt": ""}, 1},
		{"the output directory is gone", func(s *site) {
			must.OK(s.t, os.RemoveAll(filepath.Join(s.dir, "1", task.WorkDir)))
		}, map[string]string{"log.txt": ""}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, 1)
			tt.leave(s)
			e, err := s.collection().Collect()
			must.OK(t, err)
			if e.ResultBytes != tt.bytes || e.Failure != nil {
				t.Errorf("ending %+v, want %d bytes", e, tt.bytes)
			}
			got := s.result()
			record := fmt.Sprintf(`{"jobId":"J","resultBytes":%d,"results":null}`, tt.bytes)
			must.Equal(t, "job.json", got[recordFile], record)
			delete(got, recordFile)
			must.Equal(t, "result", got, tt.want)
			var lines []string
			for _, left := range cmp.Or(e.LeftOut, &app.LeftOut{}).Paths {
				lines = append(lines, left.Path+": "+left.Reason)
			}
			if told := strings.Contains(tt.want["log.txt"], "left out"); told && tt.want["log.txt"] != leftOut(lines...) || !told && e.LeftOut != nil {
				t.Errorf("the record has %v", lines)
			}
			for _, name := range []string{"metrics.json", "d/fifo", "d/socket", "absolute", "up"} {
				if info, err := os.Lstat(filepath.Join(s.dir, resultDir, name)); err == nil && !info.Mode().IsRegular() {
					t.Errorf("%s is still there: %v", name, info.Mode())
				}
			}
		})
	}
}

// unprivileged makes the test's goroutine an ordinary user, for whom permissions are
// enforced, and the owner of dir.
func unprivileged(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	must.OK(t, os.Chmod(filepath.Dir(t.TempDir()), 0o711)) // the parent of all the test's directories
	must.OK(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, nobody, nobody))
	}))
	runtime.LockOSThread() // never unlocked: the thread exits with the goroutine
	must.OK(t, syscall.Setfsuid(nobody))
	t.Cleanup(func() { must.OK(t, syscall.Setfsuid(0)) })
}

func TestCollectOpensWhatTheProgramClosed(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o500} {
		t.Run(mode.String(), func(t *testing.T) {
			s := newSite(t, 1)
			s.write("d/f", "x")
			unprivileged(t, filepath.Dir(filepath.Dir(s.dir)))
			for _, name := range []string{"d/f", "d", ".", ".."} {
				must.OK(t, os.Chmod(s.out(name), mode))
			}
			e, err := s.collection().Collect()
			must.OK(t, err)
			if e.ResultBytes != 1 || s.result()["d/f"] != "x" {
				t.Errorf("result of %d bytes: %v", e.ResultBytes, s.result())
			}
			if _, err := os.Lstat(filepath.Join(s.dir, "1", task.WorkDir)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the work directory is still there: %v", err)
			}
		})
	}
}

// TestCollectContinuesAfterAnInterruption interrupts a collection after each step and
// lets another one finish.
func TestCollectContinuesAfterAnInterruption(t *testing.T) {
	leave := func(s *site) {
		s.write("metrics.json", `{"rg":1}`)
		s.write("job.json", "own")
		s.write("a\xff", "renamed")
		must.OK(t, os.Symlink("x", s.out("link")))
		must.OK(t, os.Symlink("a\xff", s.out("alias")))
		s.write("d/f", "f")
		must.OK(t, os.Symlink("d", s.out("latest")))
		must.OK(t, os.MkdirAll(filepath.Join(s.dir, "0", task.WorkDir), 0o700)) // work directory of a lost attempt
	}
	whole := newSite(t, 1)
	leave(whole)
	want, err := whole.collection().Collect()
	must.OK(t, err)
	wantFiles := whole.result()
	steps := len(newSite(t, 1).collection().steps())
	for after := range steps + 1 {
		s := newSite(t, 1)
		leave(s)
		cut := s.collection()
		for _, step := range cut.steps()[:min(after, steps)] {
			must.OK(t, step.do())
		}
		must.OK(t, os.WriteFile(filepath.Join(s.dir, "."+recordFile+".new"), []byte(`{"jo`), 0o600))
		must.OK(t, os.WriteFile(filepath.Join(s.dir, "."+recordFile+".cut"), []byte(`{"jo`), 0o600))
		for again := range 2 { // the second time everything is already done
			c := s.collection()
			if again == 1 {
				c.Record = func(app.Ending) (app.Record, error) {
					t.Error("the record is written again")
					return nil, nil
				}
			}
			got, err := c.Collect()
			if err != nil {
				t.Fatalf("cut after %d steps: %v", after, err)
			}
			must.Equal(t, fmt.Sprintf("cut after %d steps: ending", after), got, want)
			must.Equal(t, fmt.Sprintf("cut after %d steps: result", after), s.result(), wantFiles)
			if left, _ := filepath.Glob(filepath.Join(s.dir, ".*")); len(left) > 0 {
				t.Errorf("cut after %d steps: temporary files %v are left", after, left)
			}
			for _, attempt := range []string{"0", "1"} {
				if _, err := os.Stat(filepath.Join(s.dir, attempt, task.WorkDir)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("cut after %d steps: work directory of attempt %s: %v", after, attempt, err)
				}
			}
		}
	}
}

// A manifest written any earlier could survive a crash that loses the name of a file in
// it.
func TestManifestIsWrittenOnlyOnceAllNamesAreDurable(t *testing.T) {
	s := newSite(t, 1)
	must.OK(t, os.MkdirAll(filepath.Join(s.dir, resultDir), 0o700))
	c := s.collection()
	c.files = []string{"vanished/file"}
	if err := c.writeManifest(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that can't be synced: %v", err)
	}
	if _, err := s.files.Manifest("J"); err == nil {
		t.Error("there is a manifest")
	}
}

func TestCollectStopsWhenCheckFails(t *testing.T) {
	s := newSite(t, 1)
	s.write("large", strings.Repeat("x", 1<<20))
	c := s.collection()
	looks := 0
	c.Check = func() error {
		if looks++; looks == 4 { // in the middle of the file
			return context.Canceled
		}
		return nil
	}
	if _, err := c.Collect(); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := s.files.Manifest("J"); !errors.Is(err, fault.NotFound) {
		t.Errorf("there is a manifest: %v", err)
	}
}

func bindSocket(path string) error {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	// The path of a socket must be short, so it is bound from its own directory.
	defer os.Chdir(dir)
	return errors.Join(os.Chdir(filepath.Dir(path)), syscall.Bind(fd, &syscall.SockaddrUnix{Name: filepath.Base(path)}), syscall.Close(fd))
}
