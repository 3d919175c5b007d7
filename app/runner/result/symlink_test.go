package result

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"molrun/app"
	"molrun/app/task"
	"molrun/app/test/must"
)

func TestLinksOfPrograms(t *testing.T) {
	link := func(s *site, name, target string) {
		must.OK(s.t, os.MkdirAll(filepath.Dir(s.out(name)), 0o700))
		must.OK(s.t, os.Symlink(target, s.out(name)))
	}
	tests := []struct {
		name  string
		leave func(s *site)
		want  map[string]string // in addition to model_1.pdb and run/a
		left  []string
	}{
		{"to a file", func(s *site) { link(s, "best.pdb", "model_1.pdb") }, map[string]string{"best.pdb": "one"}, nil},
		{"to a folder", func(s *site) { link(s, "latest", "run/") }, map[string]string{"latest/a": "a"}, nil},
		{"absolute", func(s *site) { link(s, "x/abs", s.out("run/../model_1.pdb")) }, map[string]string{"x/abs": "one"}, nil},
		{"out and back", func(s *site) { link(s, "run/up", "../../out/./model_1.pdb") }, map[string]string{"run/up": "one"}, nil},
		{"to a link", func(s *site) {
			link(s, "1", "2/a")
			link(s, "2", "3")
			link(s, "3", "run")
		}, map[string]string{"1": "a", "2/a": "a", "3/a": "a"}, nil},
		{"a folder with links", func(s *site) {
			link(s, "copy", "run")
			link(s, "run/best", "../model_1.pdb")
			link(s, "run/gone", "nothing")
			link(s, "run/whole", "..")
		}, map[string]string{"copy/a": "a", "copy/best": "one", "run/best": "one"}, []string{"run/gone: " + linkMissing, "run/whole: " + linkLoop}},
		{"of folders to each other", func(s *site) {
			s.write("b/b", "b")
			link(s, "run/to-b", "../b")
			link(s, "b/to-run", "../run")
		}, map[string]string{"b/b": "b", "run/to-b/b": "b", "run/to-b/to-run/a": "a", "b/to-run/a": "a", "b/to-run/to-b/b": "b"}, nil},
		{"loops", func(s *site) {
			link(s, "self", "self")
			link(s, "a", "b")
			link(s, "b", "a")
			link(s, "run/here", ".")
		}, nil, []string{"a: " + linkLoop, "b: " + linkLoop, "run/here: " + linkLoop, "self: " + linkLoop}},
		{"away", func(s *site) {
			link(s, "input", "../in/x")
			link(s, "etc", "/etc/passwd")
			link(s, "sibling", s.out("")+"side/x")
		}, nil, []string{"etc: " + linkOutside, "input: " + linkOutside, "sibling: " + linkOutside}},
		{"to what is left out", func(s *site) {
			must.OK(s.t, bindSocket(s.out("socket")))
			link(s, "to-socket", "socket")
			link(s, "below-file", "model_1.pdb/x")
		}, nil, []string{"below-file: " + linkMissing, "socket: a socket", "to-socket: " + linkMissing}},
		{"that would double the files without end", func(s *site) {
			for i := range 8 {
				link(s, fmt.Sprintf("d%d/x", i), fmt.Sprintf("../d%d", i+1))
				link(s, fmt.Sprintf("d%d/y", i), fmt.Sprintf("../d%d", i+1))
			}
			s.write("d8/f", "")
			s.write("d0/f", "")
		}, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, 1)
			s.write("model_1.pdb", "one")
			s.write("run/a", "a")
			tt.leave(s)
			e, err := s.collection().Collect()
			must.OK(t, err)
			var left []string
			if e.LeftOut != nil {
				for _, p := range e.LeftOut.Paths {
					left = append(left, p.Path+": "+p.Reason)
				}
			}
			got := s.result()
			if strings.Contains(tt.name, "without end") {
				if len(got) > 100 || len(left) == 0 || !strings.HasSuffix(left[0], linkLarge) {
					t.Errorf("%d files, left out %q", len(got), left)
				}
				return
			}
			want := map[string]string{"model_1.pdb": "one", "run/a": "a"}
			for name, text := range tt.want {
				want[name] = text
			}
			delete(got, recordFile)
			delete(got, logName)
			must.Equal(t, "result", got, want)
			must.Equal(t, "left out", left, tt.left)
		})
	}
}

func TestLeftOutIsBounded(t *testing.T) {
	s := newSite(t, 1)
	for i := range 30 {
		must.OK(t, os.Symlink("nothing", s.out(fmt.Sprintf("%02d%s", i, strings.Repeat("ü", 100)))))
		must.OK(t, os.MkdirAll(s.out(strings.Repeat("d/", 10)), 0o700))
	}
	must.Write(t, filepath.Join(s.dir, "1", task.LogFile), "no line feed")
	e, err := s.collection().Collect()
	must.OK(t, err)
	if e.LeftOut.Count != 30 || len(e.LeftOut.Paths) != shownPaths {
		t.Errorf("%d, %d of them shown", e.LeftOut.Count, len(e.LeftOut.Paths))
	}
	if log := s.result()[logName]; !strings.HasPrefix(log, "no line feed\nmolrun: left out") || !strings.HasSuffix(log, "\n  and 10 more\n") {
		t.Errorf("log %q", log)
	}
}

func TestAnOutputFolderThatWasReplacedIsUnfit(t *testing.T) {
	for what, replace := range map[string]func(out string) error{
		"a link": func(out string) error { return os.Symlink("/etc", out) },
		"a file": func(out string) error { return os.WriteFile(out, nil, 0o600) },
	} {
		s := newSite(t, 1)
		out := filepath.Clean(s.out(""))
		must.OK(t, errors.Join(os.Remove(out), replace(out)))
		_, err := s.collection().Collect()
		var unfit InvalidOutputError
		if !errors.As(err, &unfit) || !strings.Contains(string(unfit), "replaced its output folder {out} with "+what) {
			t.Errorf("%s: %v", what, err)
		}
		r := &Remote{Dir: filepath.Join(s.dir, "1"), Home: filepath.Join(t.TempDir(), "2"), MaxFiles: 10}
		must.Write(t, filepath.Join(r.Dir, task.RunFile), "{}")
		if err := r.Fetch(&app.Outcome{}, goOn); !errors.As(err, &unfit) {
			t.Errorf("fetch %s: %v", what, err)
		}
		must.OK(t, r.Fetch(nil, goOn))
	}
}

// Special files of a task on another machine are listed too, although only files are
// copied.
func TestFetchedLinks(t *testing.T) {
	s := newSite(t, 1)
	s.write("run/a", "a")
	must.OK(t, os.Symlink(s.out("run"), s.out("latest")))
	must.OK(t, os.Symlink("/etc", s.out("etc")))
	must.OK(t, bindSocket(s.out("socket")))
	must.Write(t, filepath.Join(s.dir, "1", task.RunFile), "{}")
	home := newSite(t, 1)
	must.OK(t, os.RemoveAll(filepath.Join(home.dir, "1")))
	ran := filepath.Join(s.dir, "1")
	r := &Remote{Dir: ran, Home: filepath.Join(home.dir, "1"), MaxFiles: 10}
	must.OK(t, r.Fetch(&app.Outcome{}, goOn))
	c := home.collection()
	c.Ran = ran
	e, err := c.Collect()
	must.OK(t, err)
	if e.ResultBytes != 2 || home.result()["latest/a"] != "a" {
		t.Errorf("%d bytes: %v", e.ResultBytes, home.result())
	}
	must.Equal(t, "left out", e.LeftOut, &app.LeftOut{Count: 2, Paths: []app.LeftOutPath{{Path: "etc", Reason: linkOutside}, {Path: "socket", Reason: "a socket"}}})
}

// A container can leave files owned by other users.
func TestFilesOfOtherUsersAreNamed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a file of another user")
	}
	s := newSite(t, 1)
	s.write("own", "x")
	s.write("theirs", "y")
	s.write("closed/file", "z")
	must.OK(t, os.Symlink("theirs", s.out("link")))
	unprivileged(t, filepath.Dir(filepath.Dir(s.dir)))
	must.OK(t, syscall.Setfsuid(0))
	for _, name := range []string{"theirs", "closed"} {
		must.OK(t, errors.Join(os.Chown(s.out(name), 1, 1), os.Chmod(s.out(name), 0o700)))
	}
	must.OK(t, syscall.Setfsuid(65534))
	e, err := s.collection().Collect()
	must.OK(t, err)
	must.Equal(t, "left out", e.LeftOut, &app.LeftOut{Count: 3, Paths: []app.LeftOutPath{
		{Path: "closed", Reason: unreadable}, {Path: "link", Reason: linkMissing}, {Path: "theirs", Reason: unreadable},
	}})
	must.Equal(t, "bytes", e.ResultBytes, 1)
}
