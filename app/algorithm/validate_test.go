package algorithm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app/algorithm/validator"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// validated returns an algorithm whose validator is a shell script.
func validated(t *testing.T, script, more string) *File {
	t.Helper()
	script = strings.NewReplacer("{", "{{", "}", "}}").Replace(script)
	return parseOK(t, head+"[validate]\ncommand = [\"/bin/sh\", \"-c\", '''"+script+"''', \"check\", { if = \"settings.text\", args = [\"{files.text}\"] }]\n"+more+
		"\n[[parameters]]\nname = \"n\"\ntype = \"integer\"\ndefault = 0\n[[parameters]]\nname = \"text\"\nfile = [\".txt\"]\n")
}

func newPool() *validator.Pool {
	return validator.NewPool(validator.PoolOptions{Timeout: 5 * time.Minute})
}

func rowsOf(t *testing.T, settings ...string) []ValidatorRow {
	rows := make([]ValidatorRow, len(settings))
	for i, s := range settings {
		rows[i] = ValidatorRow{Settings: parseJSON(t, s), Paths: Paths{Program: "/molrun", Files: map[string][]string{}}}
	}
	return rows
}

// faulty is a script that reports documents with n = 13 and prints a line for each
// document.
const faulty = `while read -r line; do case "$line" in *13*) echo "[{\"loc\":[\"n\",0],\"msg\":\"unlucky\",\"type\":\"luck\"}]";; *) echo "[]";; esac; done`

func TestValidatorAnswersEachRow(t *testing.T) {
	for _, many := range []string{"", "many = true"} {
		a := validated(t, faulty, many)
		got, err := a.RunValidator(t.Context(), newPool(), "ann", rowsOf(t, `{"n":1}`, `{"n":13}`, `{"n":2}`, `{"n":130}`, `{"n":3}`))
		if want := "[[] [n[0]: unlucky] [] [n[0]: unlucky] []]"; err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v; want %s", many, got, err, want)
		}
		if loc, kind := got[1][0].Loc[1], got[1][0].Type; loc != 0 || kind != "luck" {
			t.Errorf("index %v is a %T, type %q", loc, loc, kind)
		}
	}
}

func TestManyRowsAreOneProcess(t *testing.T) {
	calls := filepath.Join(t.TempDir(), "calls")
	a := validated(t, "echo x >> "+calls+"; "+faulty, "many = true")
	settings := make([]string, 2000)
	for i := range settings {
		settings[i] = fmt.Sprintf(`{"n":%d}`, i)
	}
	got, err := a.RunValidator(t.Context(), newPool(), "ann", rowsOf(t, settings...))
	if err != nil || len(got) != len(settings) || got[13] == nil || got[12] != nil || got[1999] != nil {
		t.Fatalf("%d answers, %v", len(got), err)
	}
	if text, err := os.ReadFile(calls); err != nil || string(text) != "x\n" {
		t.Errorf("calls %q, %v", text, err)
	}
}

// Rows with different files cannot share a process, because the path is an argument.
func TestValidatorReadsFiles(t *testing.T) {
	a := validated(t, `while read -r line; do printf '[{"loc":[],"msg":"%s"}]\n' "$(cat "${1:-/dev/null}")-"; done`, "many = true")
	dir := t.TempDir()
	rows := rowsOf(t, `{"n":0,"text":"a/b.txt"}`, `{"n":1}`, `{"n":2,"text":"a/c.txt"}`, `{"n":3,"text":"a/b.txt"}`)
	for i, name := range map[int]string{0: "b", 2: "c", 3: "b"} {
		rows[i].Paths.Files["text"] = []string{filepath.Join(dir, name)}
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	got, err := a.RunValidator(t.Context(), newPool(), "ann", rows)
	if want := "[[: b-] [: -] [: c-] [: b-]]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
}

func TestValidatorSeesNothingOfTheService(t *testing.T) {
	t.Setenv("MOLRUN_SECRET", "s3cret")
	a := validated(t, `echo "[{\"loc\":[],\"msg\":\"$(env | cut -d= -f1 | sort | tr '\n' ' ')in $(ls -A | wc -l) files\"}]"`, "")
	got, err := a.RunValidator(t.Context(), newPool(), "ann", rowsOf(t, `{}`))
	must.OK(t, err)
	must.Equal(t, "the environment", strings.ReplaceAll(got[0][0].Msg, " _", ""), "HOME LANG PATH PWD TMPDIR in 0 files")
}

func TestValidatorThatCannotAnswer(t *testing.T) {
	tests := []struct {
		name, script, many, cause string
		code                      fault.Code
	}{
		{"crash", "echo broken >&2; exit 3", "", "exit status 3: broken", fault.Unavailable},
		{"crash after an answer", "echo '[]'; exit 3", "", "exit status 3", fault.Unavailable},
		{"killed", "kill -9 $$", "", "signal: killed", fault.Unavailable},
		{"nothing", "cat >/dev/null", "", "output is not JSON", fault.Internal},
		{"no JSON", "echo hello", "", "output is not JSON", fault.Internal},
		{"no array", "echo '{}'", "", "details must be an array", fault.Internal},
		{"no detail", "echo '[1]'", "", `a detail needs "loc"`, fault.Internal},
		{"no message", `echo '[{"loc":[]}]'`, "", `a detail needs "loc"`, fault.Internal},
		{"odd path", `echo '[{"loc":[1.5],"msg":"a"}]'`, "", `"loc" can contain`, fault.Internal},
		{"too few lines", "echo '[]'", "many = true", "1 lines for 2 documents", fault.Internal},
		{"too many lines", "echo '[]'; echo '[]'; echo '[]'", "many = true", "3 lines for 2 documents", fault.Internal},
		{"too much", "yes", "", "more than 8388608 bytes", fault.Unavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := validated(t, tt.script, tt.many).RunValidator(t.Context(), newPool(), "ann", rowsOf(t, `{}`, `{"n":1}`))
			var e *fault.Error
			if got != nil || !errors.As(err, &e) || e.Code != tt.code || e.Message == "" || !strings.Contains(e.Err.Error(), tt.cause) {
				t.Errorf("%v, error %v; want %s with cause %q", got, err, tt.code, tt.cause)
			}
		})
	}
}

// A validator that reports errors can exit with status 1.
func TestValidatorMayFailWithFindings(t *testing.T) {
	a := validated(t, `echo '[{"loc":["n"],"msg":"bad"}]'; exit 1`, "")
	got, err := a.RunValidator(t.Context(), newPool(), "ann", rowsOf(t, `{}`))
	if want := "[[n: bad]]"; err != nil || fmt.Sprint(got) != want || got[0][0].Type != "value" {
		t.Errorf("%+v, %v; want %s of type value", got, err, want)
	}
}

// The remaining process keeps the validator's output open.
func TestValidatorMayLeaveAProcessBehind(t *testing.T) {
	for answer, want := range map[string]string{
		"[]": "[[]]", `[{"loc":["n"],"msg":"bad"}]`: "[[n: bad]]",
	} {
		a := validated(t, "setsid sleep 8 & echo '"+answer+"'", "")
		got, err := a.RunValidator(t.Context(), newPool(), "ann", rowsOf(t, `{}`))
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%v, %v; want %s", got, err, want)
		}
	}
	cut := validated(t, "setsid sleep 8 & echo '['", "")
	if _, err := cut.RunValidator(t.Context(), newPool(), "ann", rowsOf(t, `{}`)); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("without the end of its output: %v", err)
	}
}

func TestMissingValidatorProgram(t *testing.T) {
	a := parseOK(t, head+"[validate]\ncommand = [\"/nosuch/program\"]\n")
	if _, err := a.RunValidator(t.Context(), newPool(), "ann", rowsOf(t, `{}`)); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("error %v", err)
	}
}

// Stopping a validator must also stop its children, which closes the pipe that they hold
// open.
func TestValidatorIsStoppedWithItsCaller(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.OK(t, syscall.Mkfifo(pipe, 0o600))
	a := validated(t, "exec 9>"+pipe+"; echo started >&9; sleep 600 & wait", "")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := a.RunValidator(ctx, newPool(), "ann", rowsOf(t, `{}`))
		done <- err
	}()
	f, err := os.Open(pipe) // waits for the validator
	must.OK(t, err)
	defer f.Close()
	line := make([]byte, len("started\n"))
	if _, err := io.ReadFull(f, line); err != nil {
		t.Fatal(err)
	}
	cancel()
	if rest, err := io.ReadAll(f); len(rest) > 0 || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestNoValidator(t *testing.T) {
	a := parseOK(t, head)
	got, err := a.RunValidator(t.Context(), newPool(), "ann", rowsOf(t, `{}`, `{}`))
	if a.HasValidator() || err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
}
