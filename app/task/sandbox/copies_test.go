package sandbox

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"molrun/app/test/must"
)

// inside runs a command in a sandbox with this copy of /etc.
func inside(t *testing.T, o Confinement, script string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-c", script)
	c.Dir, c.Env = t.TempDir(), []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	done, err := Confine(c, o)
	must.OK(t, err)
	defer done()
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v, %s", script, err, out)
	}
	return string(out)
}

// TestCopyShowsWhatTheEntriesOfEtcShow compares what programs see of this machine's own /etc.
func TestCopyShowsWhatTheEntriesOfEtcShow(t *testing.T) {
	entries := confinement(t)
	copied := entries
	var keep *os.File
	copied.Etc, keep = NewCopies(filepath.Join(t.TempDir(), "etc"), nil).Use()
	if copied.Etc == "" {
		t.Fatal("there is no copy")
	}
	defer keep.Close()
	for _, network := range []bool{false, true} {
		entries.Allowed.Network, copied.Allowed.Network = network, network
		const look = `cd /etc; find . \( -type f -o -type d \) -printf '%y %p\n' -o -printf '%y %p %l\n' | grep -vxF 'f ./resolv.conf' | sort; find . -type f -print0 | sort -z | xargs -0 cksum | grep -v resolv.conf`
		if diff := cmp.Diff(strings.Split(inside(t, entries, look), "\n"), strings.Split(inside(t, copied, look), "\n")); diff != "" {
			t.Errorf("network %v: the copy shows (+), the entries show (-):\n%s", network, diff)
		}
		mounts := strings.Fields(inside(t, copied, "cut -d' ' -f5 /proc/self/mountinfo | grep ^/etc"))
		want := []string{"/etc"}
		if network {
			want = []string{"/etc", "/etc/hosts", "/etc/resolv.conf"}
		}
		if diff := cmp.Diff(want, mounts); diff != "" {
			t.Errorf("network %v: mounts %s", network, diff)
		}
	}
	if out := inside(t, copied, "touch /etc/x /etc/passwd 2>&1; echo $?"); !strings.HasSuffix(out, "\n1\n") {
		t.Errorf("it may write to /etc: %s", out)
	}
}

// TestWhatIsListedInEtcIsSeenBesideTheCopy lists a file that has no place in the copy.
func TestWhatIsListedInEtcIsSeenBesideTheCopy(t *testing.T) {
	o := confinement(t)
	var keep *os.File
	o.Etc, keep = NewCopies(filepath.Join(t.TempDir(), "etc"), nil).Use()
	defer keep.Close()
	for listed, text := range map[string]string{"/etc/pam.d/other": "pam", "/etc/host.conf": "multi", "/etc/subuid": ""} {
		o.Allowed.Read = []string{listed}
		if out := inside(t, o, "cat "+listed+"; ls /etc/nsswitch.conf; ls -d /etc/shadow /etc/pam.d/login 2>/dev/null; true"); !strings.Contains(out, text) || !strings.Contains(out, "/etc/nsswitch.conf\n") || strings.Contains(out, "shadow") || strings.Contains(out, "login") {
			t.Errorf("%s is listed, and seen is %s", listed, out)
		}
	}
}

// copiesOf makes a folder that stands for /etc, and copies of it.
func copiesOf(t *testing.T, hide ...string) (c *Copies, put func(name, text string, mode fs.FileMode)) {
	t.Helper()
	from := filepath.Join(t.TempDir(), "machine")
	put = func(name, text string, mode fs.FileMode) {
		t.Helper()
		path := filepath.Join(from, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path+"~", []byte(text), mode)
		}
		if err == nil {
			err = os.Rename(path+"~", path)
		}
		must.OK(t, err)
	}
	put("app/conf", "first", 0o644)
	put("app/token", "to be closed", 0o644)
	put("shadow", "secret", 0o644)
	put("closed", "secret", 0o640)
	put("run/me", "#!/bin/sh", 0o755)
	for i := range hide {
		hide[i] = filepath.Join(from, hide[i])
	}
	c = NewCopies(filepath.Join(t.TempDir(), "etc"), hide)
	c.from = from
	return c, put
}

// files returns the names and texts of a copy, without what is made for every one.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	})
	must.OK(t, err)
	maps.DeleteFunc(all, func(name, _ string) bool {
		return slices.Contains([]string{"passwd", "group", "hosts", "resolv.conf"}, name)
	})
	return all
}

func TestCopyFollowsEtcAndStaysWhileItIsUsed(t *testing.T) {
	c, put := copiesOf(t)
	first, keep := c.Use()
	want := map[string]string{"app/conf": "first", "app/token": "to be closed", "run/me": "#!/bin/sh"}
	must.Equal(t, "the copy", files(t, first), want)
	if info, err := os.Stat(filepath.Join(first, "run/me")); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("the program has mode %v, %v", info.Mode(), err)
	}
	again, other := c.Use()
	c.look = time.Time{}
	if same, third := c.Use(); again != first || same != first {
		t.Errorf("nothing has changed, and the copies are %s, %s and %s", first, again, same)
	} else {
		third.Close()
	}
	put("app/conf", "second", 0o644)
	must.OK(t, os.Chmod(filepath.Join(c.from, "app/token"), 0o600))
	c.look = time.Time{}
	second, keepSecond := c.Use()
	defer keepSecond.Close()
	must.Equal(t, "the copy", files(t, second), map[string]string{"app/conf": "second", "run/me": "#!/bin/sh"})
	keep.Close()
	must.OK(t, os.WriteFile(filepath.Join(c.from, "run/me"), []byte("#!/bin/sh -e"), 0o755)) // in place
	c.look = time.Time{}
	third, last := c.Use()
	defer last.Close()
	if got := files(t, third)["run/me"]; got != "#!/bin/sh -e" {
		t.Errorf("after a change in place, the copy has %q", got)
	}
	if diff := cmp.Diff(want, files(t, first)); diff != "" {
		t.Errorf("the first copy is still used, and is not whole: %s", diff)
	}
	other.Close()
	put("app/most", "", 0o644)
	c.look = time.Time{}
	_, newest := c.Use()
	defer newest.Close()
	if exists(first) || !exists(second) {
		t.Errorf("the first copy, which nobody uses, is there: %v; so is the second, which is used: %v", exists(first), exists(second))
	}
}

// TestCopiesOfAnEarlierServiceAreRemoved leaves a copy as a crash does.
func TestCopiesOfAnEarlierServiceAreRemoved(t *testing.T) {
	c, _ := copiesOf(t)
	old, keep := c.Use()
	keep.Close()
	next := NewCopies(c.dir, nil)
	next.from = c.from
	path, keep := next.Use()
	defer keep.Close()
	if path == "" || exists(old) {
		t.Errorf("the copy of the earlier service is there: %v; the new one is %q", exists(old), path)
	}
}

func TestHiddenFilesAreNotCopied(t *testing.T) {
	c, _ := copiesOf(t, "app/token", "run")
	path, keep := c.Use()
	defer keep.Close()
	must.Equal(t, "the copy", files(t, path), map[string]string{"app/conf": "first"})
}

// TestFileThatIsClosedMeanwhileIsNotCopied looks at a folder whose files change before they are copied.
func TestFileThatIsClosedMeanwhileIsNotCopied(t *testing.T) {
	c, _ := copiesOf(t)
	all := settingsOf(nil, nil).all(c.from)
	must.OK(t, os.Chmod(filepath.Join(c.from, "app/token"), 0o600))
	must.OK(t, os.Remove(filepath.Join(c.from, "run/me")))
	must.OK(t, os.Symlink(filepath.Join(c.from, "shadow"), filepath.Join(c.from, "run/me")))
	if _, err := copyFile(filepath.Join(c.from, "run/me"), filepath.Join(t.TempDir(), "me"), 100); ignoreGone(err) != nil || err == nil {
		t.Errorf("a link in the place of a file is followed: %v", err)
	}
	to := t.TempDir()
	must.OK(t, fill(to, c.from, all, nil))
	must.Equal(t, "the copy", files(t, to), map[string]string{"app/conf": "first"})
}

// TestWithoutACopyTheEntriesAreSeen has no copy because it would be too large, or was removed.
func TestWithoutACopyTheEntriesAreSeen(t *testing.T) {
	c, put := copiesOf(t)
	put("app/large", "", 0o644)
	must.OK(t, os.Truncate(filepath.Join(c.from, "app/large"), mostCopied+1))
	if path, keep := c.Use(); path != "" || keep != nil {
		t.Errorf("a copy of too much: %s", path)
	}
	if left, err := os.ReadDir(c.dir); err != nil || len(left) > 0 {
		t.Errorf("a failed copy leaves %v, %v", left, err)
	}
	put("app/large", "", 0o644)
	c.look = time.Time{}
	path, keep := c.Use()
	keep.Close()
	must.OK(t, os.RemoveAll(path))
	if gone, keep := c.Use(); gone != "" || keep != nil {
		t.Errorf("a copy that was removed is given: %s", gone)
	}
	if path, keep := c.Use(); path == "" {
		t.Error("it is not made again")
	} else {
		keep.Close()
	}
	o := confinement(t)
	o.Etc = path // gone
	if out := inside(t, o, "ls /etc/nsswitch.conf"); out != "/etc/nsswitch.conf\n" {
		t.Error(out)
	}
}
