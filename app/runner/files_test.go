package runner

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/task"
)

func TestCopyFile(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 4096, 3<<20 + 17} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
		must(t, os.WriteFile(from, want, 0o600))
		in, err := os.Open(from)
		must(t, err)
		must(t, os.RemoveAll(to))
		must(t, copyTo(to, in, func() error { return nil }))
		must(t, in.Close())
		got, err := os.ReadFile(to)
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes: the copy differs", size)
		}
	}
}

func TestCopyStopsWhereItIsToldTo(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "from"), []byte("x"), 0o600))
	in, err := os.Open(filepath.Join(dir, "from"))
	must(t, err)
	defer in.Close()
	if err := copyTo(filepath.Join(dir, "to"), in, func() error { return errStopped }); !errors.Is(err, errStopped) {
		t.Errorf("error %v", err)
	}
}

func TestCopyTreeTakesFilesAlone(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(from, "d/e"), 0o700))
	must(t, os.WriteFile(filepath.Join(from, "d/e/f"), []byte("x"), 0o600))
	must(t, os.Symlink("/etc/passwd", filepath.Join(from, "d/link")))
	must(t, os.Symlink("/etc", filepath.Join(from, "etc")))
	must(t, syscall.Mkfifo(filepath.Join(from, "fifo"), 0o600))
	must(t, copyTree(to, from, func() error { return nil }))
	var got []string
	must(t, filepath.WalkDir(to, func(path string, _ os.DirEntry, err error) error {
		got = append(got, strings.TrimPrefix(path, to))
		return err
	}))
	if want := "|/d|/d/e|/d/e/f"; strings.Join(got, "|") != want {
		t.Errorf("copied %v, want %s", got, want)
	}
}

func TestCopyTreeTakesWhateverNamesAndModes(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	must(t, os.Mkdir(to, 0o700))
	for _, name := range []string{"bad\xff/f\n", "closed/deep/f", "f"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(from, name), []byte("x"), 0o600))
	}
	unprivileged(t, dir)
	for _, name := range []string{"closed/deep/f", "closed/deep", "closed", "f", "."} {
		must(t, os.Chmod(filepath.Join(from, name), 0))
	}
	must(t, copyTree(to, from, func() error { return nil }))
	for _, name := range []string{"bad\xff/f\n", "closed/deep/f", "f"} {
		if text, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(text) != "x" {
			t.Errorf("%q: %q, %v", name, text, err)
		}
	}
}

func TestPlainText(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain\ttext\n", "plain\ttext\n"},
		{"\x1b[31mred\x1b[0m", "red"},
		{"\x1b]0;title\x07shown", "shown"},
		{"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"10%\r20%\r\ndone", "10%\n20%\ndone"},
		{"bell\a back\b nul\x00", "bell back nul"},
		{"bad \xff utf", "bad \uFFFD utf"},
		{"c1 \u009b31m\u0085", "c1 "},
		{"cut \x1b[3", "cut "},
	}
	for _, tt := range tests {
		if got := plainText(tt.in); got != tt.want {
			t.Errorf("plainText(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzPlainText(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\r\n\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := plainText(s)
		if !utf8.ValidString(got) {
			t.Errorf("%q is no UTF-8", got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) }); i >= 0 {
			t.Errorf("%q has a control character at %d", got, i)
		}
	})
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
		if again := safeName(got); again != got {
			t.Errorf("safeName(%q) = %q is not safe: %q", name, got, again)
		}
	})
}

func TestLastBytesBeginsWithALine(t *testing.T) {
	tests := []struct{ in, want string }{
		{"short", "short"},
		{"first\nsecond\n", "second\n"},
		{"äääää", "ääää"},
	}
	for _, tt := range tests {
		if got := lastBytes(tt.in, 9); got != tt.want {
			t.Errorf("lastBytes(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestLogTailIsBounded(t *testing.T) {
	dir := t.TempDir()
	if got := logTail(dir); got != "" {
		t.Errorf("no log: %q", got)
	}
	must(t, os.WriteFile(filepath.Join(dir, task.LogFile), []byte(strings.Repeat("line\n", 1<<20)), 0o600))
	if got := len(logTail(dir)); got != searchedTail {
		t.Errorf("%d bytes, want %d", got, searchedTail)
	}
	must(t, os.Remove(filepath.Join(dir, task.LogFile)))
	must(t, syscall.Mkfifo(filepath.Join(dir, task.LogFile), 0o600))
	if got := logTail(dir); got != "" {
		t.Errorf("a pipe in its place: %q", got)
	}
}

// oneDir puts every job into the same directory.
type oneDir struct {
	Dirs
	path string
}

func (d oneDir) JobDir(id app.JobID) string { return filepath.Join(d.path, string(id)) }

// nothingClaimed is a service without jobs in hand.
type nothingClaimed struct{ Jobs }

func (nothingClaimed) Claims(context.Context) ([]app.Claimed, error) { return nil, nil }

func TestSweepKeepsWhatIsYoungAndForeign(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	k := kept{dir: filepath.Join(dir, "kept"), keep: time.Hour, now: func() time.Time { return now }, jobs: nothingClaimed{}, dirs: oneDir{path: dir}, log: zerolog.Nop()}
	must(t, k.sweep(t.Context())) // nothing was noted yet
	const old, young = app.JobID("01KA000000000000000000000A"), app.JobID("01KA000000000000000000000B")
	for _, id := range []app.JobID{old, young} {
		must(t, os.MkdirAll(filepath.Join(dir, string(id), "2", task.WorkDir), 0o700))
	}
	must(t, k.note(old, 2))
	now = now.Add(time.Hour)
	must(t, k.note(young, 2))
	must(t, os.WriteFile(filepath.Join(k.dir, "notes"), []byte("mine"), 0o600))
	must(t, os.WriteFile(filepath.Join(k.dir, string(young)+".1"), nil, 0o600)) // cut short by a crash
	must(t, k.sweep(t.Context()))
	if isDir(filepath.Join(dir, string(old), "2", task.WorkDir)) {
		t.Error("the old one is still there")
	}
	if !isDir(filepath.Join(dir, string(young), "2", task.WorkDir)) {
		t.Error("the young one is gone")
	}
	now = now.Add(time.Hour)
	must(t, k.sweep(t.Context()))
	notes, err := os.ReadDir(k.dir)
	must(t, err)
	if len(notes) != 1 || notes[0].Name() != "notes" {
		t.Errorf("left are %v, want the file of somebody else alone", notes)
	}
}
