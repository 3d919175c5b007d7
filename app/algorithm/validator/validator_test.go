package validator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/base/fault"
	"molrun/app/base/limit"
	"molrun/app/base/strictjson"
	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

func TestSlowValidatorIsStopped(t *testing.T) {
	p := Program{Type: "demo", Version: "1"}
	calls := p.calls([]Input{{Argv: []string{"/bin/sh", "-c", "sleep 600"}, Settings: &strictjson.Value{Kind: strictjson.Object}}})
	got, err := p.runCall(t.Context(), calls[0], time.Millisecond, NewPool(PoolOptions{}).process(p.Sandbox))
	if got != nil || fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "took longer than 1ms") {
		t.Errorf("%v, error %v", got, err)
	}
}

func TestTimeLimitGrowsWithQuestions(t *testing.T) {
	for _, tt := range []struct {
		questions     int
		timeout, want time.Duration
	}{
		{1, 5 * time.Second, 5 * time.Second},
		{100, 5 * time.Second, 5 * time.Second},
		{101, 5 * time.Second, 10 * time.Second},
		{10000, 5 * time.Second, time.Minute},
		{1, 5 * time.Minute, 5 * time.Minute},
		{10000, 5 * time.Minute, 5 * time.Minute},
	} {
		must.Equal(t, fmt.Sprintf("%d questions of %v", tt.questions, tt.timeout), (&call{questions: make([]int, tt.questions)}).limit(tt.timeout), tt.want)
	}
}

// builtin returns a pool with an in-process check, which fails to start processes.
func builtin(check func(ctx context.Context, documents io.Reader, faults io.Writer) error) *Pool {
	return NewPool(PoolOptions{
		Confine: func(*exec.Cmd, protocol.Sandbox, []string) (func(), error) {
			return nil, errors.New("a process was started")
		},
		Builtin: func(argv []string) func(context.Context, io.Reader, io.Writer) error {
			if argv[0] != "built-in" {
				return nil
			}
			return check
		},
	})
}

func TestBuiltinCheckNeedsNoProcess(t *testing.T) {
	var read string
	pool := builtin(func(_ context.Context, documents io.Reader, faults io.Writer) error {
		all, err := io.ReadAll(documents)
		read = string(all)
		fmt.Fprintln(faults, "[]\n"+`[{"loc":["n",1],"msg":"a\u0000b"}]`)
		return err
	})
	object := &strictjson.Value{Kind: strictjson.Object}
	program := Program{Type: "demo", Version: "1", Many: true}
	got, err := pool.AskProgram(t.Context(), "ann", program, []Input{{[]string{"built-in"}, nil, object}, {[]string{"built-in"}, nil, object}})
	if want := "[[] [n[1]: ab]]"; err != nil || fmt.Sprint(got) != want || read != "{}\n{}\n" {
		t.Errorf("%v, %v for %q; want %s", got, err, read, want)
	}
	if _, err := pool.AskProgram(t.Context(), "ann", program, []Input{{[]string{"other"}, nil, object}}); err == nil {
		t.Error("another command did not start a process")
	}
}

// A long document can take a lot of memory, which only a separate process can limit.
func TestBuiltinCheckOfALongTextNeedsAProcess(t *testing.T) {
	pool := builtin(func(_ context.Context, _ io.Reader, faults io.Writer) error {
		_, err := io.WriteString(faults, "[]")
		return err
	})
	file := filepath.Join(t.TempDir(), "long")
	must.OK(t, os.WriteFile(file, make([]byte, builtinLimit+1), 0o600))
	short := &strictjson.Value{Kind: strictjson.String, Text: "a", Raw: []byte(`"a"`)}
	long := &strictjson.Value{Kind: strictjson.String, Text: strings.Repeat("a", builtinLimit)}
	for name, question := range map[string]Input{
		"document": {[]string{"built-in"}, nil, long},
		"file":     {[]string{"built-in", file}, map[string][]string{"text": {file}}, short},
	} {
		_, err := pool.AskProgram(t.Context(), "ann", Program{Type: "demo", Version: "1"}, []Input{question})
		var e *fault.Error
		if !errors.As(err, &e) || !strings.Contains(e.Err.Error(), "a process was started") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBuiltinCheckFailsLikeAProcess(t *testing.T) {
	for name, check := range map[string]func(context.Context, io.Reader, io.Writer) error{
		"panic": func(context.Context, io.Reader, io.Writer) error { panic("mistake") },
		"error": func(context.Context, io.Reader, io.Writer) error { return errors.New("no file") },
		"output without end": func(ctx context.Context, _ io.Reader, faults io.Writer) error {
			for ctx.Err() == nil {
				_, _ = faults.Write(make([]byte, 1<<20))
			}
			return ctx.Err()
		},
	} {
		question := Input{[]string{"built-in"}, nil, &strictjson.Value{Kind: strictjson.Object}}
		_, err := builtin(check).AskProgram(t.Context(), "ann", Program{Type: "demo", Version: "1"}, []Input{question})
		if fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestChecksHoldNoSlotOfTheirRequest runs checks that finish only after another request
// has held the only slot.
func TestChecksHoldNoSlotOfTheirRequest(t *testing.T) {
	g := &limit.Slots{All: 1}
	other := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, leave, err := g.Enter(ctx, "bob")
		if err == nil {
			leave()
		}
		return err
	}
	pool := builtin(func(_ context.Context, _ io.Reader, faults io.Writer) error {
		fmt.Fprintln(faults, "[]")
		return other()
	})
	inside, leave, err := g.Enter(t.Context(), "ann")
	must.OK(t, err)
	defer leave()
	object := &strictjson.Value{Kind: strictjson.Object}
	if _, err := pool.AskProgram(inside, "ann", Program{Type: "demo", Version: "1"}, []Input{{Argv: []string{"built-in"}, Settings: object}}); err != nil {
		t.Error(err)
	}
	if err := pool.CheckInProcess(inside, "ann", func(context.Context) error { return other() }); err != nil {
		t.Error(err)
	}
}
