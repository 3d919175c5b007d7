package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/task"
	"molrun/app/test/must"
)

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
		{"\x1f~ \x7f\u0080\u009f\u00a0é", "~ \u00a0é"}, // characters adjacent to control characters
	}
	for _, tt := range tests {
		must.Equal(t, fmt.Sprintf("plainText(%q)", tt.in), plainText(tt.in), tt.want)
	}
}

func FuzzPlainText(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\r\n\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := plainText(s)
		if !utf8.ValidString(got) {
			t.Errorf("%q is not UTF-8", got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) }); i >= 0 {
			t.Errorf("%q has a control character at %d", got, i)
		}
	})
}

func TestLastBytesBeginsWithALine(t *testing.T) {
	tests := []struct {
		in   string
		n    int
		want string
	}{
		{"short", 9, "short"},
		{"first\nsecond\n", 9, "second\n"},
		{"äääää", 9, "ääää"},
		{"a\nb", 3, "a\nb"},
		{"aa\nb", 3, "b"},
		{"abc\n", 3, "bc\n"},
	}
	for _, tt := range tests {
		must.Equal(t, fmt.Sprintf("lastBytes(%q, %d)", tt.in, tt.n), lastBytes(tt.in, tt.n), tt.want)
	}
}

func TestLogTailIsBounded(t *testing.T) {
	dir := t.TempDir()
	must.Equal(t, "no log", logTail(dir), "")
	must.OK(t, os.WriteFile(filepath.Join(dir, task.LogFile), []byte(strings.Repeat("line\n", 1<<20)), 0o600))
	must.Equal(t, "bytes", len(logTail(dir)), searchedTail)
	must.OK(t, os.Remove(filepath.Join(dir, task.LogFile)))
	must.OK(t, syscall.Mkfifo(filepath.Join(dir, task.LogFile), 0o600))
	must.Equal(t, "a pipe in its place", logTail(dir), "")
}

func TestWarningsOfProgramsAndOfTheirAlgorithmFile(t *testing.T) {
	alg, mistakes := algorithm.Parse("tree.toml", []byte(`format = 1
type = "tree"
version = "1"
command = ["tree"]
[[warnings]]
pattern = '(?m)^WARNING: (.*)$'
message = "$1"
`))
	must.Equal(t, "mistakes", mistakes, nil)
	o := &app.Outcome{Warnings: []string{"it is short", "many gaps"}}
	tail := "WARNING: many gaps\nWARNING: few sites\n"
	must.Equal(t, "without the file", warnings(o, nil, tail), []string{"it is short", "many gaps"})
	must.Equal(t, "with it", warnings(o, alg, tail), []string{"it is short", "many gaps", "few sites"})
}

func TestShellWhoseProgramWasKilledIsTold(t *testing.T) {
	const said = "The program of step \"fold\" was killed (exit status 137), most likely for lack of memory. Give the job more memory, or a smaller input."
	for tail, want := range map[string]string{
		"Killed\n": said, "sh: line 1: 42 Killed  python3 fold.py\n": said, "cannot open x\n": said + " Last output: cannot open x",
	} {
		f, _ := failure(&app.Job{}, &app.Outcome{Cause: app.CauseExit, ExitCode: 137, Step: "fold"}, nil, tail)
		must.Equal(t, tail, f.Message, want)
	}
}

func TestResultIsIncompleteForWantOfMemory(t *testing.T) {
	for over, want := range map[bool]app.FailureCode{true: app.FailedMemory, false: app.FailedNoResult} {
		code, message := missingOutput(&app.Outcome{OverMemory: over}, "The result has no a.pdb.")
		if code != want || !strings.Contains(message, "The result has no a.pdb.") || strings.HasSuffix(message, moreMemory) != over {
			t.Errorf("%v: %s, %s", over, code, message)
		}
	}
}

func TestTimeoutNamesWhoseLimitItWas(t *testing.T) {
	j := &app.Job{MaxRuntime: 50}
	for of, want := range map[string]string{
		"":                    "The program exceeded its time limit of 50s. Give the job more time (maxRuntimeSeconds) or reduce it.",
		"the partition short": "The program exceeded the time limit of 50s set by the partition short. Reduce the job, or ask an administrator for another partition.",
	} {
		j.Private.LimitOf = of
		if f, _ := failure(j, &app.Outcome{Cause: app.CauseTimeout}, nil, ""); f.Message != want {
			t.Errorf("message %q, want %q", f.Message, want)
		}
	}
}
