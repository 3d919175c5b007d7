package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// pkg is what the go command says of a package.
type pkg struct {
	Dir          string
	ImportPath   string
	Module       struct{ Path, Dir string }
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string

	near   []string            // import paths of the packages whose tests are run, nearest first
	nearTo map[string][]string // the packages whose mutants each of these meets
}

// left names packages without code of their own to mutate: measurements, tests
// alone, and the helpers of tests.
var left = map[string]bool{
	"":                     true,
	"app/test/fixture":     true,
	"app/test/bench":       true,
	"app/test/enginetest":  true,
	"app/test/conformance": true,
	"app/test/cluster":     true,
	"app/test/faults":      true,
	"app/test/mutants":     true,
	"app/test/resulttest":  true,
	"app/test/simulation":  true,
	"app/test/whole":       true,
	"app/test/contract":    true,
}

// testedBy names the packages with the nearest tests where they are not in the
// package itself and the closest folder above it that has some.
var testedBy = map[string][]string{
	"app":              {"app", "web", "app/job/retention"},
	"app/job/access":   {"app", "app/job/follow", "web"},
	"app/job/apikey":   {"app/job/apikey", "app", "web"},
	"app/job/estimate": {"app/runner", "web"},
	"app/job/eta":      {"app/job/eta", "app/runner", "web"},
	"app/base/events":  {"app/base/events", "storage", "app/job/follow"},
	// The tests of app/executor/slurm take minutes on a real cluster.
	"app/executor/slurm/client": {"app/executor/slurm/client"},
	"app/executor/slurm/gather": {"app/executor/slurm/gather"},
	"app/algorithm/fanout":      {"app/algorithm/fanout", "app", "web"},
	"app/base/fault":            {"app", "web"},
	"app/job/feed":              {"storage", "app/job/follow", "web"},
	"app/job/follow":            {"app/job/follow", "web"},
	"app/server/host":           {"app/server/host", "app/server", "app/cli/doctor"},
	"app/job/listing":           {"app", "web"},
	"app/job/output":            {"app/job/output", "web"},
	"app/algorithm/placement":   {"app/algorithm/placement", "app/algorithm/routing", "app/server/config", "app"},
	"app/job/resubmit":          {"app/test/e2e"},
	"app/server/snapshot":       {"app/server/snapshot", "app/server/check", "app/server/backup", "app/server"},
	"app/base/sortid":           {"app/base/sortid", "storage"},
	"app/base/tables":           {"app/base/tables", "web"},
	"app/task/process":          {"app/task/process", "app/task", "app/executor/local"},
	"app/task/sandbox":          {"app/task/sandbox", "app/task", "app/executor/local"},
	"app/task/start":            {"app/task/start", "app/executor/local"},
	"app/job/upload":            {"app", "blobs", "web"},
	"storage/kv":                {"storage/kv", "storage"},
	"storage/kv/boltfile":       {"storage/kv/boltfile", "storage/kv", "storage"},
}

// path is the package's folder in the module.
func (p *pkg) path() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, p.Module.Path), "/")
}

// listPackages returns the packages to mutate, each with its nearest tests.
func listPackages(ctx context.Context, patterns []string) ([]*pkg, error) {
	wanted, err := goList(ctx, patterns)
	if err != nil {
		return nil, err
	}
	if len(wanted) == 0 {
		return nil, fmt.Errorf("no package matches %s", strings.Join(patterns, " "))
	}
	all, err := goList(ctx, []string{wanted[0].Module.Path + "/..."})
	if err != nil {
		return nil, err
	}
	tested := map[string]bool{}
	for _, p := range all {
		tested[p.path()] = len(p.TestGoFiles)+len(p.XTestGoFiles) > 0
	}
	named := map[string]bool{}
	for _, p := range wanted {
		named[p.ImportPath] = true
	}
	var pkgs []*pkg
	nearTo := map[string][]string{}
	for _, p := range all {
		if left[p.path()] || len(p.GoFiles) == 0 {
			continue
		}
		p.nearTo = nearTo
		for _, near := range nearest(p.path(), tested) {
			near = path.Join(p.Module.Path, near)
			p.near = append(p.near, near)
			nearTo[near] = append(nearTo[near], p.ImportPath)
		}
		if named[p.ImportPath] {
			pkgs = append(pkgs, p)
		}
	}
	if len(pkgs) == 0 {
		return nil, fmt.Errorf("no package to mutate in %s", strings.Join(patterns, " "))
	}
	return pkgs, nil
}

// nearest returns the packages whose tests are run for a package: its own, and
// those of the closest folder above. The tests of app, web and so on are far from
// the parts below them that have tests of their own. Those of the command line are in
// app/test/e2e, too.
func nearest(name string, tested map[string]bool) []string {
	if by, ok := testedBy[name]; ok {
		return by
	}
	if line, _ := strings.CutPrefix(name, "app/cli"); line != name {
		near := []string{"app/test/e2e"}
		if tested[name] {
			near = []string{name, "app/test/e2e"}
		}
		return near
	}
	var near []string
	if tested[name] {
		near = append(near, name)
	}
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if tested[at] && (len(near) == 0 || at != "app") {
			return append(near, at)
		}
	}
	return near
}

func goList(ctx context.Context, patterns []string) ([]*pkg, error) {
	c := exec.CommandContext(ctx, "go", append([]string{"list", "-json=Dir,ImportPath,Module,GoFiles,TestGoFiles,XTestGoFiles"}, patterns...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var pkgs []*pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(pkg)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		pkgs = append(pkgs, p)
	}
}

// mutants returns every mutant of the package and its number of lines.
func (p *pkg) mutants() (all []mutant, lines int, err error) {
	for _, name := range p.GoFiles {
		src, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, 0, err
		}
		found, err := mutate(path.Join(p.path(), name), src)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, found...)
		lines += bytes.Count(src, []byte("\n"))
	}
	return all, lines, nil
}
