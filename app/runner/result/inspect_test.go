package result

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"molrun/app/task"
	"molrun/app/test/must"
)

// Without a sandbox, a program can hard-link files that it does not own into its output
// directory.
func TestFilesWithNamesElsewhereAreNotCollected(t *testing.T) {
	s := newSite(t, 1)
	outside := filepath.Join(t.TempDir(), "outside")
	must.OK(t, os.WriteFile(outside, []byte("not the program's"), 0o400))
	work := filepath.Join(s.dir, "1", task.WorkDir)
	must.OK(t, os.WriteFile(filepath.Join(work, task.InDir, "input"), []byte("input"), 0o600))
	must.OK(t, os.WriteFile(filepath.Join(work, task.TempDir, "temp"), []byte("temp"), 0o600))
	s.write("own", "own")
	for from, to := range map[string][]string{
		outside:                                  {"a", "sub/b"},
		s.out("own"):                             {"sub/own"},
		filepath.Join(work, task.InDir, "input"): {"input"},
		filepath.Join(work, task.TempDir, "temp"): {"temp", "sub/temp"},
	} {
		for _, name := range to {
			must.OK(t, os.MkdirAll(filepath.Dir(s.out(name)), 0o700))
			must.OK(t, os.Link(from, s.out(name)))
		}
	}
	_, err := s.collection().Collect()
	must.OK(t, err)
	got := s.result()
	delete(got, recordFile)
	delete(got, logName)
	want := map[string]string{"own": "own", "sub/own": "own", "input": "input", "temp": "temp", "sub/temp": "temp"}
	must.Equal(t, "result", got, want)
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("the file outside is now %v, %v", info.Mode(), err)
	}
}

func TestInvalidResults(t *testing.T) {
	tests := []struct {
		name  string
		leave func(s *site)
		want  string
	}{
		{"files", func(s *site) {
			for i := range 101 {
				s.write(fmt.Sprint(i), "")
			}
		}, "more than 100 files"},
		{"files in directories", func(s *site) {
			for i := range 51 {
				s.write(fmt.Sprintf("%d/x", i), "")
			}
		}, "more than 100 files"},
		{"holes", func(s *site) {
			for i := range 3 { // each alone stays below the limit
				s.write(fmt.Sprint(i), "begin")
				must.OK(s.t, os.Truncate(s.out(fmt.Sprint(i)), maxHoles/2))
			}
		}, "more than 16.0 GiB of holes"},
		{"depth", func(s *site) { s.write(strings.Repeat("d/", maxDepth+1)+"x", "") }, "64 levels deep"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, 1)
			tt.leave(s)
			_, err := s.collection().Collect()
			var no InvalidOutputError
			if !errors.As(err, &no) || !strings.Contains(string(no), tt.want) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
			must.OK(t, ReturnOutput(filepath.Join(s.dir, "1")))
			if !IsDir(s.out(".")) || IsDir(filepath.Join(s.dir, resultDir)) {
				t.Error("the files were not moved back to the work directory")
			}
		})
	}
}

func FuzzSafeName(f *testing.F) {
	f.Add("a\xffb\\c\n")
	f.Add(strings.Repeat("\xff", 255))
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || len(name) > maxName || strings.ContainsAny(name, "/\x00") {
			return
		}
		got := safeName(name)
		if !utf8.ValidString(got) || len(got) > maxName || got == "" || strings.ContainsAny(got, "\\/\n\x00") {
			t.Errorf("safeName(%q) = %q", name, got)
		}
		must.Equal(t, fmt.Sprintf("safeName(%q)", name), safeName(got), got)
	})
}

// TestHolesAreCountedExactly creates a file whose holes have exactly the maximum size,
// then one byte more.
func TestHolesAreCountedExactly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sparse")
	f, err := os.Create(path)
	must.OK(t, err)
	defer f.Close()
	_, err = f.Write(make([]byte, 8<<20))
	must.OK(t, errors.Join(err, f.Sync()))
	if err := f.Truncate(maxHoles); err != nil {
		t.Skipf("no file of %d bytes can be made here: %v", int64(maxHoles), err)
	}
	must.OK(t, f.Sync())
	var s syscall.Stat_t
	must.OK(t, syscall.Fstat(int(f.Fd()), &s))
	for more, fits := range map[int64]bool{0: true, 1: false} {
		must.OK(t, f.Truncate(maxHoles+s.Blocks*512+more))
		_, err := survey(dir, 10, goOn)
		if unfit := new(InvalidOutputError); fits != (err == nil) || !fits && !errors.As(err, unfit) {
			t.Errorf("holes of %d bytes more than there may be: %v", more, err)
		}
	}
}

func TestSurveyCountsEntriesUpToTheLimit(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	must.OK(t, os.WriteFile(filepath.Join(dir, "folder", "file"), []byte("four"), 0o600))
	if n, err := survey(dir, 2, goOn); err != nil || n != (amount{1, 4}) {
		t.Errorf("%+v, %v; want one file of 4 bytes", n, err)
	}
	var unfit InvalidOutputError
	if _, err := survey(dir, 1, goOn); !errors.As(err, &unfit) {
		t.Errorf("2 entries where 1 may be: %v", err)
	}
}
