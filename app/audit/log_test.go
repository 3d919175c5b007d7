package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"molrun/app/unit"
)

// testAudit opens an audit log of small files.
func testAudit(t *testing.T, keep int) (*Log, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	a, err := Open(t.TempDir(), 500, keep, zerolog.New(&log))
	must(t, err)
	t.Cleanup(func() { must(t, a.Close()) })
	return a, &log
}

func entry(i int) Entry {
	return Entry{Time: unit.At(time.Unix(int64(i), 0)), Action: "job.submit", Object: fmt.Sprint(i), Result: "ok"}
}

// objects reads the whole log.
func objects(t *testing.T, path string) (all []string) {
	t.Helper()
	must(t, Read(filepath.Dir(path), Filter{}, func(e Entry) error { all = append(all, e.Object); return nil }))
	return all
}

func TestAuditLogKeepsTheNewestFiles(t *testing.T) {
	a, _ := testAudit(t, 3)
	for i := range 100 {
		a.Add(entry(i))
	}
	files, err := filepath.Glob(a.path + "*")
	must(t, err)
	if len(files) != 4 {
		t.Errorf("files %v, want the current one and 3 older", files)
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Size() > 500 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	got := objects(t, a.path)
	for i, object := range got {
		if want := fmt.Sprint(100 - len(got) + i); object != want {
			t.Fatalf("entries %v: not the newest in order", got)
		}
	}
	if len(got) < 20 {
		t.Errorf("only %d entries are left", len(got))
	}
}

func TestAuditLogGoesOnWhenTheDiskHasRoomAgain(t *testing.T) {
	a, log := testAudit(t, 3)
	a.Add(entry(1))
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	must(t, err)
	disk := a.file
	a.file = full // every write ends with ENOSPC
	a.Add(entry(2))
	a.Add(entry(3))
	a.file = disk
	must(t, full.Close())
	a.Add(entry(4))
	a.Add(entry(5))
	if diff := cmp.Diff([]string{"1", "2", "4", "5"}, objects(t, a.path)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	} // the second tells that 2 are lost
	text, err := os.ReadFile(a.path)
	must(t, err)
	if !strings.Contains(string(text), `"action":"audit.lost","object":"2"`) {
		t.Errorf("the log does not tell what is missing: %s", text)
	}
	if strings.Count(log.String(), "no space left") != 2 {
		t.Errorf("the service's log: %s", log)
	}
}

func TestAuditLogDropsTheLineThatACrashCutOff(t *testing.T) {
	a, _ := testAudit(t, 3)
	a.Add(entry(1))
	must(t, os.WriteFile(a.path+".x", nil, 0o600)) // no file of the log
	file, err := os.OpenFile(a.path, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = io.WriteString(file, `{"time":"2026-`)
	must(t, errors.Join(err, file.Close()))
	again, err := Open(filepath.Dir(a.path), 500, 3, zerolog.Nop())
	must(t, err)
	again.Add(entry(2))
	must(t, again.Close())
	if diff := cmp.Diff([]string{"1", "2"}, objects(t, a.path)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if text, _ := os.ReadFile(a.path); strings.Count(string(text), "\n") != 2 {
		t.Errorf("the file holds %q", text)
	}
}

func TestAuditLogIsOneLineAnEntryWhateverIsInIt(t *testing.T) {
	a, _ := testAudit(t, 3)
	e := entry(1)
	e.Object = "a\n{\"action\":\"forged\"}\x1b[2J\u2028\x00\xff"
	a.Add(e)
	text, err := os.ReadFile(a.path)
	must(t, err)
	if strings.Count(string(text), "\n") != 1 {
		t.Errorf("more than one line: %q", text)
	}
	for _, r := range strings.TrimSpace(string(text)) {
		if r < ' ' || r == '\u2028' {
			t.Errorf("a control character is not escaped: %q", text)
		}
	}
}

func TestFollowedAuditLogGoesOnInTheNextFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := testAudit(t, 50)
		a.Add(entry(0))
		seen := make(chan string)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- Follow(ctx, filepath.Dir(a.path), Filter{}, func(e Entry) error { seen <- e.Object; return nil })
		}()
		next := func(want int) {
			t.Helper()
			select {
			case got := <-seen:
				if got != fmt.Sprint(want) {
					t.Fatalf("entry %s, want %d", got, want)
				}
			case <-time.After(time.Minute):
				t.Fatalf("entry %d is never shown", want)
			}
		}
		next(0)
		for i := 1; i < 30; i++ { // several files
			a.Add(entry(i))
			next(i)
		}
		stop()
		must(t, <-ended)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
