package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// reach is what each test of a package runs of the package under mutation.
type reach struct {
	Tests []testReach
}

// testReach is one test: how long it takes on the clean code, and the blocks of
// source that it runs.
type testReach struct {
	Name   string
	Left   string // why it is left out
	Took   time.Duration
	Blocks []block
}

// block is a part of a file, positions inclusive, as coverage profiles name them.
type block struct {
	File                                   string
	FromLine, FromColumn, ToLine, ToColumn int
}

func (b block) has(m mutant) bool {
	after := m.Line > b.FromLine || m.Line == b.FromLine && m.Column >= b.FromColumn
	before := m.Line < b.ToLine || m.Line == b.ToLine && m.Column <= b.ToColumn
	return b.File == m.File && after && before
}

// reaches reports whether any test runs the mutant's line.
func (r reach) reaches(m mutant) bool {
	return slices.ContainsFunc(r.Tests, func(t testReach) bool { return t.runs(m) })
}

func (t testReach) runs(m mutant) bool {
	return slices.ContainsFunc(t.Blocks, func(b block) bool { return b.has(m) })
}

// choose returns the fastest tests that run the mutant's line and take no longer
// than the budget together, and how long that is. Code that only child processes
// run is covered by no test: then all tests are candidates.
func (r reach) choose(m mutant, budget time.Duration) (names []string, took time.Duration) {
	tests := slices.DeleteFunc(slices.Clone(r.Tests), func(t testReach) bool {
		return !t.runs(m)
	})
	if len(tests) == 0 {
		tests = slices.Clone(r.Tests)
	}
	slices.SortStableFunc(tests, func(a, b testReach) int { return int(a.Took - b.Took) })
	for _, t := range tests {
		if len(names) > 0 && took+t.Took > budget {
			break
		}
		names = append(names, t.Name)
		took += t.Took
	}
	return names, took
}

// measure runs each test of a near package alone on the clean code. What it finds
// is kept beside the memory under the digest of the test binary, also if it is
// interrupted.
func (l *lab) measure(ctx context.Context, p *pkg, near string) (reach, error) {
	binary := filepath.Join(l.scratch, "clean.test")
	if out, err := l.compile(ctx, p, near, binary, "-cover", "-covermode=set", "-coverpkg="+strings.Join(p.nearTo[near], ",")); err != nil {
		return reach{}, fmt.Errorf("compile the tests of %s: %w\n%s", near, err, out)
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return reach{}, err
	}
	kept := l.memory.file(fmt.Sprintf("reach-%x.json", sha256.Sum256(data)))
	r, err := readReach(kept)
	if err != nil {
		return reach{}, err
	}
	listed := l.test(ctx, p, near, binary, os.Getenv("GOFLAGS"), time.Minute, "-test.list", "^(Test|Fuzz|Example)")
	for name := range strings.FieldsSeq(listed.output) {
		if !isTest.MatchString(name) || slices.ContainsFunc(r.Tests, func(t testReach) bool { return t.Name == name }) {
			continue
		}
		t := l.measureTest(ctx, p, near, binary, name)
		if ctx.Err() != nil {
			break
		}
		r.Tests = append(r.Tests, t)
	}
	if err := r.write(kept); err != nil {
		return reach{}, err
	}
	r.Tests = slices.DeleteFunc(r.Tests, func(t testReach) bool { return t.Left != "" })
	if ctx.Err() == nil && len(r.Tests) == 0 {
		return reach{}, fmt.Errorf("no test of %s passes on the clean code", near)
	}
	return r, ctx.Err()
}

var isTest = regexp.MustCompile(`^(Test|Fuzz|Example)`)

func readReach(name string) (r reach, err error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(data, &r)
}

func (r reach) write(name string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o600)
}

// measureTest runs one test.
func (l *lab) measureTest(ctx context.Context, p *pkg, near, binary, name string) testReach {
	t := testReach{Name: name}
	profile := filepath.Join(l.scratch, "profile")
	start := time.Now()
	res := l.test(ctx, p, near, binary, os.Getenv("GOFLAGS"), l.Slowest, "-test.run", "^"+name+"$", "-test.coverprofile", profile)
	t.Took = time.Since(start)
	var err error
	switch {
	case res.late:
		t.Left = fmt.Sprintf("it takes longer than %s", l.Slowest)
	case !res.passed:
		t.Left = "it fails on the clean code"
	default:
		if t.Blocks, err = readProfile(profile, p.Module.Path+"/"); err != nil {
			t.Left = err.Error()
		}
	}
	if t.Left != "" && ctx.Err() == nil {
		fmt.Fprintf(l.log, "%s of %s is left out: %s\n", name, near, t.Left)
	}
	return t
}

// readProfile returns the blocks of a coverage profile that were run.
func readProfile(name, module string) ([]block, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	defer os.Remove(name)
	var blocks []block
	for s := bufio.NewScanner(f); s.Scan(); {
		file, rest, ok := strings.Cut(s.Text(), ":")
		var b block
		var statements, count int
		if n, _ := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.FromLine, &b.FromColumn, &b.ToLine, &b.ToColumn, &statements, &count); !ok || n != 6 || count == 0 {
			continue // the line "mode: set", or a block that was not run
		}
		b.File = strings.TrimPrefix(file, module)
		blocks = append(blocks, b)
	}
	return blocks, nil
}
