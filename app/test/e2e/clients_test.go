package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"molrun/app/test/must"
)

// generation is a directory in which a client is generated from the server's
// openapi.yaml, compiled and run.
type generation struct {
	t      *testing.T
	folder string
	env    []string
}

// newGeneration copies the client files of a language into the directory of openapi.yaml.
func newGeneration(t *testing.T, u user, language string) *generation {
	t.Helper()
	g := &generation{t, t.TempDir(), append(os.Environ(), "MOLRUN_URL="+u.base, "MOLRUN_KEY="+u.key)}
	must.OK(t, os.CopyFS(g.folder, os.DirFS(filepath.Join(root, "app", "test", "contract", "testdata", "clients", language))))
	must.OK(t, os.WriteFile(filepath.Join(g.folder, "openapi.yaml"), u.do("GET", "/openapi.yaml", nil).want(200).body, 0o600))
	return g
}

// command runs a program and returns its output and error.
func (g *generation) command(name string, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(g.t.Context(), 10*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env, command.WaitDelay = g.folder, g.env, 10*time.Second
	var out, all bytes.Buffer
	command.Stdout, command.Stderr = &out, &all
	err = command.Run()
	return out.String(), all.String(), err
}

// run runs a program and fails the test if the program fails.
func (g *generation) run(name string, args ...string) (stdout string) {
	g.t.Helper()
	out, stderr, err := g.command(name, args...)
	if err != nil {
		g.t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr)
	}
	return out
}

// unreachable matches the output of npm and go when they cannot reach a registry.
var unreachable = regexp.MustCompile(`ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|ENOTCACHED|` +
	`dial tcp|no such host|connection refused|i/o timeout|module lookup disabled`)

// download runs a program that downloads packages, and skips the test if the registry is
// unreachable.
func (g *generation) download(name string, args ...string) {
	g.t.Helper()
	out, stderr, err := g.command(name, args...)
	if err != nil && unreachable.MatchString(out+stderr) {
		must.Skip(g.t, "generating this client needs packages that can't be downloaded here")
	}
	if err != nil {
		g.t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr)
	}
}

// done checks that a client ran to its end.
func (g *generation) done(stdout string) {
	g.t.Helper()
	must.Equal(g.t, "the client printed", stdout, "done\n")
}

// needNode skips the test unless a suitable Node.js is installed. what describes the use
// of Node.js.
func needNode(t *testing.T, what string) {
	t.Helper()
	version, err := exec.Command("node", "--version").Output()
	if _, missing := exec.LookPath("npm"); err != nil || missing != nil || !regexp.MustCompile(`^v(20|2[2-9]|[3-9]\d)\.`).Match(version) {
		must.Skip(t, "%s needs Node.js 20, or 22 and later, with npm", what)
	}
}

// TestGeneratedTypeScriptClientRunsTheMainFlow also requires that an OpenAPI linter
// reports nothing.
func TestGeneratedTypeScriptClientRunsTheMainFlow(t *testing.T) {
	t.Parallel()
	needNode(t, "linting openapi.yaml and generating the TypeScript client")
	g := newGeneration(t, plain(t).user("lab", "ann@lab.example"), "typescript")
	g.env = append(g.env, "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	g.download("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	var lint struct {
		Totals struct{ Errors, Warnings int }
	}
	found := g.run("node_modules/.bin/redocly", "lint", "--format=json", "openapi.yaml")
	must.OK(t, json.Unmarshal([]byte(found), &lint))
	if lint.Totals.Errors != 0 || lint.Totals.Warnings != 0 {
		t.Errorf("redocly lint has %d errors and %d warnings:\n%s", lint.Totals.Errors, lint.Totals.Warnings, found)
	}
	g.run("node_modules/.bin/openapi-typescript", "openapi.yaml", "--output", "api.d.ts")
	g.run("node_modules/.bin/tsc", "--project", ".")
	g.done(g.run("node", "built/flow.js"))
}

func TestGeneratedGoClientRunsTheMainFlow(t *testing.T) {
	t.Parallel()
	g := newGeneration(t, plain(t).user("lab", "ann@lab.example"), "go")
	g.env = append(g.env, "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off")
	g.download("go", "mod", "download")
	must.OK(t, os.Mkdir(filepath.Join(g.folder, "api"), 0o700))
	g.run("go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", "api/api.go", "openapi.yaml")
	g.run("go", "vet", "./...")
	g.done(g.run("go", "run", "."))
}
