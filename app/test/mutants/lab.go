package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// lab plants mutants and runs tests.
type lab struct {
	options
	known   map[string]string
	memory  *memory
	scratch string
	log     io.Writer
}

// plant tries the sample of a package and returns its row of the table.
func (l *lab) plant(ctx context.Context, p *pkg) (row, error) {
	row := row{Package: p.path()}
	all, lines, err := p.mutants()
	if err != nil {
		return row, err
	}
	for _, key := range staleEquivalents(l.known, p.path(), all) {
		fmt.Fprintf(l.log, "no longer there, remove it from equivalent.txt: %s\n", key)
	}
	quota := max(l.Min, min(l.Max, lines/l.Lines))
	var near []reach
	for _, m := range sample(all, l.Seed) {
		if row.planted() >= quota {
			break
		}
		if _, ok := l.known[m.key()]; ok {
			row.count(m, equivalent)
			continue
		}
		o, ok := l.memory.of(m.key())
		if !ok || o == survived {
			if near == nil {
				if near, err = l.measureAll(ctx, p); err != nil {
					return row, err
				}
			}
			if o, err = l.try(ctx, p, near, m); err != nil {
				return row, err
			}
			if err := l.memory.note(m.key(), o); err != nil {
				return row, err
			}
			fmt.Fprintf(l.log, "%-12s %s\n", o, m.key())
		}
		row.count(m, o)
	}
	return row, nil
}

// measureAll measures the tests of all near packages.
func (l *lab) measureAll(ctx context.Context, p *pkg) ([]reach, error) {
	var all []reach
	for _, near := range p.near {
		r, err := l.measure(ctx, p, near)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// try runs the tests that reach a mutant, nearest first, until one fails. If none
// reaches it, perhaps because only child processes run that line, all are run.
func (l *lab) try(ctx context.Context, p *pkg, near []reach, m mutant) (outcome, error) {
	overlay, err := l.overlay(p, m)
	if err != nil {
		return "", err
	}
	reached := slices.ContainsFunc(near, func(r reach) bool { return r.reaches(m) })
	for i, r := range near {
		if reached && !r.reaches(m) {
			continue
		}
		if o := l.tryNear(ctx, p, p.near[i], overlay, r, m); o != survived || ctx.Err() != nil {
			return o, ctx.Err()
		}
	}
	return survived, nil
}

// tryNear compiles the tests of one package with a mutant and runs those that
// reach it.
func (l *lab) tryNear(ctx context.Context, p *pkg, near, overlay string, r reach, m mutant) outcome {
	binary := filepath.Join(l.scratch, "mutant.test")
	if _, err := l.compile(ctx, p, near, binary, "-overlay", overlay); err != nil {
		return uncompiled
	}
	names, took := r.choose(m, l.Budget)
	res := l.test(ctx, p, near, binary, "-overlay="+overlay, 3*took+20*time.Second, "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$")
	switch {
	case res.late:
		return timedOut
	case res.passed:
		return survived
	}
	return killed
}

// overlay writes the mutated file and tells the go command to read it in place of
// the true one.
func (l *lab) overlay(p *pkg, m mutant) (string, error) {
	source := filepath.Join(p.Module.Dir, m.File)
	src, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(l.scratch, "mutant.go"), filepath.Join(l.scratch, "overlay.json")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(changed, m.apply(src), 0o600); err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, replaced, 0o600)
}

// compile builds the test binary of a near package.
func (l *lab) compile(ctx context.Context, p *pkg, near, binary string, flags ...string) (output []byte, err error) {
	args := append([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary}, flags...)
	c := exec.CommandContext(ctx, "go", append(args, near)...)
	c.Dir = p.Module.Dir
	return c.CombinedOutput()
}

// result is how a test binary ended.
type result struct {
	passed, late bool
	output       string
}

// test runs a test binary in the folder of its package, with a temporary folder of
// its own, and kills all of its processes after the limit. The go command has flags of
// its own there, since some tests build the program.
func (l *lab) test(ctx context.Context, p *pkg, near, binary, flags string, limit time.Duration, args ...string) result {
	tmp := filepath.Join(l.scratch, "tmp")
	defer os.RemoveAll(tmp)
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return result{output: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := append(append(namespace(), binary), args...)
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir = filepath.Join(p.Module.Dir, strings.TrimPrefix(near, p.Module.Path))
	c.Env = append(os.Environ(), "TMPDIR="+tmp, "GOFLAGS="+flags)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 5 * time.Second
	err := c.Run()
	return result{passed: err == nil, late: ctx.Err() != nil, output: out.String()}
}

// namespace is the command that gives another its own PID namespace, with a shell
// as the init process that reaps orphans, or nothing if only root may do that.
func namespace() []string {
	if os.Geteuid() != 0 {
		return nil
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		return nil
	}
	return []string{"unshare", "--fork", "--pid", "--mount-proc", "--kill-child", "sh", "-c", `"$@"; exit $?`, "sh"}
}
