package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rs/zerolog"

	"molrun/app/base/unit"
	"molrun/app/test/must"
)

// testAudit opens an audit log with small files.
func testAudit(t *testing.T, keep int) (*Log, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	a, err := Open(t.TempDir(), 500, keep, zerolog.New(&log))
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, a.Close()) })
	return a, &log
}

func entry(i int) Entry {
	return Entry{Time: unit.At(time.Unix(int64(i), 0)), Action: "job.submit", Object: fmt.Sprint(i), Result: "ok"}
}

// objects returns the objects of all entries in the log.
func objects(t *testing.T, path string) (all []string) {
	t.Helper()
	must.OK(t, ReadEntries(filepath.Dir(path), Filter{}, func(e Entry) error { all = append(all, e.Object); return nil }))
	return all
}

func TestAuditLogKeepsTheNewestFiles(t *testing.T) {
	a, _ := testAudit(t, 3)
	for i := range 100 {
		a.Add(entry(i))
	}
	files, err := filepath.Glob(a.path + "*")
	must.OK(t, err)
	must.Equal(t, "files, of which one is the current", len(files), 4)
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
	must.OK(t, err)
	disk := a.file
	a.file = full // every write fails with ENOSPC
	a.Add(entry(2))
	a.Add(entry(3))
	a.file = disk
	must.OK(t, full.Close())
	a.Add(entry(4))
	a.Add(entry(5))
	must.Equal(t, "entries", objects(t, a.path), []string{"1", "2", "4", "5"}) // "audit.lost" with a count of 2
	text, err := os.ReadFile(a.path)
	must.OK(t, err)
	if !strings.Contains(string(text), `"action":"audit.lost","object":"2"`) {
		t.Errorf("the log does not say what is missing: %s", text)
	}
	must.Equal(t, "entries are lost", a.Lost(), 2)
	if strings.Count(log.String(), "no space left") != 2 {
		t.Errorf("the service's log: %s", log)
	}
}

func TestAuditLogDropsTheLineThatACrashCutOff(t *testing.T) {
	a, _ := testAudit(t, 3)
	a.Add(entry(1))
	must.OK(t, os.WriteFile(a.path+".x", nil, 0o600)) // not a file of the log
	file, err := os.OpenFile(a.path, os.O_WRONLY|os.O_APPEND, 0)
	must.OK(t, err)
	_, err = io.WriteString(file, `{"time":"2026-`)
	must.OK(t, errors.Join(err, file.Close()))
	again, err := Open(filepath.Dir(a.path), 500, 3, zerolog.Nop())
	must.OK(t, err)
	again.Add(entry(2))
	must.OK(t, again.Close())
	must.Equal(t, "entries", objects(t, a.path), []string{"1", "2"})
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
	must.OK(t, err)
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
		for i := 1; i < 12; i++ { // fills several files
			a.Add(entry(i))
			next(i)
		}
		stop()
		must.OK(t, <-ended)
	})
}

// TestReadingEndsWithTheFirstError fails at each entry of three files in turn.
func TestReadingEndsWithTheFirstError(t *testing.T) {
	a, _ := testAudit(t, 50)
	for i := range 12 {
		a.Add(entry(i))
	}
	data, refused := filepath.Dir(a.path), errors.New("refused")
	for failing := range 12 {
		seen := 0
		each := func(Entry) error {
			if seen++; seen > failing {
				return refused
			}
			return nil
		}
		if err := ReadEntries(data, Filter{}, each); !errors.Is(err, refused) || seen != failing+1 {
			t.Errorf("refused at entry %d: %d were shown, %v", failing, seen, err)
		}
	}
}

// TestFollowingEndsWithTheFirstError makes the callback fail at an entry in the current
// file, and at entries before and after a rotation.
func TestFollowingEndsWithTheFirstError(t *testing.T) {
	for name, tt := range map[string]struct{ added, refused int }{
		"the same file": {1, 1}, "the full file": {8, 1}, "the new file": {8, 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := testAudit(t, 50)
				a.Add(entry(0))
				refused := errors.New("refused")
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				ended, last := make(chan error, 1), ""
				go func() {
					ended <- Follow(ctx, filepath.Dir(a.path), Filter{}, func(e Entry) error {
						if last = e.Object; last == fmt.Sprint(tt.refused) {
							return refused
						}
						return nil
					})
				}()
				synctest.Wait() // until Follow has read the first entry and sleeps
				for i := range tt.added {
					a.Add(entry(i + 1))
				}
				if err := <-ended; !errors.Is(err, refused) || last != fmt.Sprint(tt.refused) {
					t.Errorf("it ends at entry %s with %v, want the error at %d", last, err, tt.refused)
				}
			})
		})
	}
}

// TestAuditLogTakesBackAnEntryOfWhichAPartWasWritten limits the file size so that only
// part of an entry can be written, then lifts the limit.
func TestAuditLogTakesBackAnEntryOfWhichAPartWasWritten(t *testing.T) {
	a, log := testAudit(t, 3)
	a.Add(entry(1))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var old syscall.Rlimit
	must.OK(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	must.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(a.size) + 20, Max: old.Max}))
	a.Add(entry(2))
	must.OK(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
	if !strings.Contains(log.String(), "file too large") {
		t.Errorf("the service's log: %s", log)
	}
	if info, err := os.Stat(a.path); err != nil || info.Size() != a.size {
		t.Errorf("the file: %v, %v; want the %d bytes of the first entry", info, err, a.size)
	}
	a.Add(entry(3))
	must.Equal(t, "entries", objects(t, a.path), []string{"1", "1", "3"}) // "audit.lost" with a count of 1
}

// TestAuditLogGoesOnWhenTheNextFileCanBeMade adds an entry to a full log while no file
// descriptor is free, and another one afterwards.
func TestAuditLogGoesOnWhenTheNextFileCanBeMade(t *testing.T) {
	a, log := testAudit(t, 3)
	added := 0
	for ; a.size <= a.maxSize-a.size/int64(max(added, 1)); added++ {
		a.Add(entry(added))
	}
	var old syscall.Rlimit
	must.OK(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	must.OK(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: old.Max}))
	a.Add(entry(100))
	must.OK(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old))
	if strings.Count(log.String(), "too many open files") != 1 {
		t.Fatalf("the service's log: %s", log)
	}
	a.Add(entry(101))
	if got := objects(t, a.path); len(got) != added+2 || !slices.Equal(got[added:], []string{"1", "101"}) {
		t.Errorf("entries %v after %d, want that 1 is lost, then 101", got, added)
	}
}

// TestLastReadsBackward compares reading backward with reading forward. The log has
// several files, with lines longer than a block.
func TestLastReadsBackward(t *testing.T) {
	a, err := Open(t.TempDir(), 200<<10, 10, zerolog.Nop())
	must.OK(t, err)
	defer a.Close()
	dir := filepath.Dir(a.path)
	for i := range 2000 {
		e := entry(i)
		e.Key, e.Organization = fmt.Sprint("key", i%7), []string{"lab", "other", ""}[i%3]
		if i%500 == 3 {
			e.Remote = strings.Repeat("x", 150<<10)
		}
		if i%5 == 0 {
			e.Result = "NOT_FOUND"
		}
		a.Add(e)
	}
	for name, f := range map[string]Filter{
		"all": {}, "of a key": {Key: "key3"}, "since": {Since: time.Unix(1500, 0)}, "until": {Until: time.Unix(1500, 0)},
		"failed": {Failed: true}, "of lab": {Organizations: []string{"lab"}}, "of nobody": {Organizations: []string{""}}, "none": {Key: "absent"},
	} {
		var want []Entry
		must.OK(t, ReadEntries(dir, f, func(e Entry) error { want = append(want, e); return nil }))
		slices.Reverse(want)
		for _, limit := range []int{1, 10, len(want), len(want) + 1} {
			got, more, err := ReadLast(dir, f, limit)
			must.OK(t, err)
			if diff := cmp.Diff(want[:min(limit, len(want))], got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, %d: %s", name, limit, diff)
			}
			must.Equal(t, fmt.Sprintf("%s, %d of %d: more", name, limit, len(want)), more, limit < len(want))
		}
	}
	if got, more, err := ReadLast(t.TempDir(), Filter{}, 1); len(got) > 0 || more || err != nil {
		t.Errorf("no log: %v %v %v", got, more, err)
	}
}

// TestLastHasABound reads a log larger than the limit for a page.
func TestLastHasABound(t *testing.T) {
	dir := t.TempDir()
	line := `{"time":"2026-11-20T10:40:00.000Z","action":"job.submit","object":"` + strings.Repeat("x", 60<<10) + `","result":"ok"}` + "\n"
	must.OK(t, os.WriteFile(filepath.Join(dir, Name), []byte(`{"time":"2026-11-20T10:40:00.000Z","action":"key.create","result":"ok"}`+"\n"+strings.Repeat(line, lastBytes/len(line)+10)), 0o600))
	if got, more, err := ReadLast(dir, Filter{Action: "key"}, 10); len(got) > 0 || !more || err != nil {
		t.Errorf("%d entries, more %v, %v", len(got), more, err)
	}
}
