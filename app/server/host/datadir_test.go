package host

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/base/fault"
	"molrun/app/server/config"
	"molrun/app/test/must"
	"molrun/storage/kv/boltfile"
)

// TestMain simulates a failed database if the first argument is fail, and a lost one if
// the second is gone.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "fail" {
		o := StorageOptions(config.Default(), zerolog.New(os.Stdout))
		failure := errors.New("write: input/output error")
		if os.Args[2] == "gone" {
			failure = errors.Join(failure, boltfile.ErrGone)
		}
		o.Fatal(failure)
		os.Stdout.WriteString("still running\n")
		select {}
	}
	os.Exit(m.Run())
}

func TestDataDirectoryIsMadeAndClosedToOthers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before os.FileMode // 0 means that the directory is missing
		warns  bool
		says   string
	}{
		{"new", 0, false, ""},
		{"private", 0o700, false, ""},
		{"private but for nobody", 0o500, false, ""},
		{"readable by others", 0o755, true, ""},
		{"searchable by the group", 0o710, true, ""},
		{"writable by others", 0o702, false, "is writable by others (mode 0702): check its content, then run chmod 700 on it"},
		{"writable by the group", 0o770, false, "is writable by others (mode 0770): check its content, then run chmod 700 on it"},
	} {
		data := filepath.Join(t.TempDir(), "a", "data")
		if tt.before != 0 {
			must.OK(t, errors.Join(os.MkdirAll(data, 0o700), os.Chmod(data, tt.before)))
		}
		var log bytes.Buffer
		err := PrepareData(data, true, zerolog.New(&log))
		if tt.says != "" {
			if !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), data+" "+tt.says) {
				t.Errorf("%s: error %v, want %q", tt.name, err, tt.says)
			}
			continue
		}
		must.OK(t, err)
		if info, err := os.Stat(data); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: afterwards %v, %v", tt.name, info.Mode(), err)
		}
		if warned := strings.Contains(log.String(), "data directory was accessible to others"); warned != tt.warns {
			t.Errorf("%s: the log has %q", tt.name, log.String())
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	must.Fail(t, "below a file", PrepareData(filepath.Join(file, "data"), true, zerolog.Nop()), "the data directory: ")
}

func TestDataDirectoryThatCannotBeClosedIsRefused(t *testing.T) {
	t.Parallel()
	const data = "/proc/self/task" // readable by everyone, and its mode cannot be changed
	if err := PrepareData(data, true, zerolog.Nop()); !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "(mode 0555), and changing that failed") {
		t.Errorf("error %v", err)
	}
}

func TestOwnerOfAFileIsNamedUnlessItIsThisUser(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a")
	must.OK(t, os.WriteFile(path, nil, 0o600))
	info, err := os.Stat(path)
	must.OK(t, err)
	if text := OtherOwner(path, info); text != "" {
		t.Error(text)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	must.OK(t, os.Chown(path, 12345, -1))
	info, err = os.Stat(path)
	must.OK(t, err)
	if text := OtherOwner(path, info); !strings.HasPrefix(text, path+" belongs to user 12345 and this is user 0; ") {
		t.Errorf("got %q", text)
	}
}

func TestServiceRunsWhereItsSocketAnswers(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if Running(t.Context(), data) {
		t.Error("a service runs on an empty directory")
	}
	must.OK(t, os.WriteFile(filepath.Join(data, Socket), nil, 0o600))
	if Running(t.Context(), data) {
		t.Error("a service runs where only its socket is left")
	}
	must.OK(t, os.Remove(filepath.Join(data, Socket)))
	dir, err := os.Open(data)
	must.OK(t, err)
	defer dir.Close()
	l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), Socket)) // a socket address has at most 107 bytes
	must.OK(t, err)
	defer l.Close()
	if !Running(t.Context(), data) {
		t.Error("Running does not detect a listening service")
	}
}

func TestOptionsOfTheDatabaseFollowTheConfiguration(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Database.MaxSize = 1 << 30
	var log bytes.Buffer
	o := StorageOptions(c, zerolog.New(&log))
	if o.MaxSize != 1<<30 || o.AnyFileSystem {
		t.Errorf("%+v", o)
	}
	o.Warn("commits are lost")
	if !strings.Contains(log.String(), `"level":"error"`) || !strings.Contains(log.String(), "commits are lost") {
		t.Errorf("the log has %s", log.String())
	}
	c.Database.FileSystem = "any"
	if o := StorageOptions(c, zerolog.Nop()); !o.AnyFileSystem {
		t.Errorf("%+v", o)
	}
}

// A failed database ends the process, so that a restart recovers. If the directory has
// disappeared, the service first reports briefly that it is not ready.
func TestFailedDatabaseEndsTheProcess(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]struct {
		says   string
		goesOn bool
	}{
		"failed": {"restart the service (no acknowledged changes are lost)", false},
		"gone":   {"restore it before the next start", true},
	} {
		c := exec.CommandContext(t.Context(), os.Args[0], "fail", how)
		begin := time.Now()
		out, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != ExitDatabaseFailed || !strings.Contains(string(out), want.says) {
			t.Errorf("%s: %v: %s", how, err, out)
		}
		if strings.Contains(string(out), "still running") != want.goesOn || want.goesOn && time.Since(begin) < goneNotice {
			t.Errorf("%s: it ends after %s: %s", how, time.Since(begin), out)
		}
	}
}
