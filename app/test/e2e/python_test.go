package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"molrun/app/test/must"
)

// TestPythonClient runs the Python client's tests, which start their own services, and
// checks its types.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	examples, err := filepath.Abs(filepath.Join(root, "app", "algorithm", "builtin", "examples"))
	must.OK(t, err)
	docs, err := filepath.Abs(filepath.Join(root, "web", "docs"))
	must.OK(t, err)
	for _, name := range []string{"molrun", "tests", "pyproject.toml"} {
		from := filepath.Join(root, "app", "client", "python", name)
		if info, err := os.Stat(from); err == nil && info.IsDir() {
			must.OK(t, os.CopyFS(filepath.Join(folder, name), os.DirFS(from)))
			continue
		}
		must.OK(t, os.WriteFile(filepath.Join(folder, name), []byte(must.Read(t, from)), 0o600))
	}
	run := func(args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		c := exec.CommandContext(ctx, "/usr/bin/python3", args...)
		c.Dir, c.WaitDelay = folder, time.Minute
		c.Env = append(os.Environ(), "MOLRUN_BINARY="+molrun, "MOLRUN_EXAMPLES="+examples, "MOLRUN_DOCS="+docs, "PYTHONDONTWRITEBYTECODE=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("python3 %q: %v\n%s", args, err, out)
		}
	}
	for _, module := range []string{"pytest", "mypy", "pandas", "nbconvert", "ipykernel"} {
		if exec.Command("/usr/bin/python3", "-c", "import "+module).Run() != nil {
			must.Skip(t, "the system's Python has no %s", module)
		}
	}
	run("-m", "mypy", "--cache-dir=/dev/null")
	run("-m", "pytest", "-p", "no:cacheprovider", "-q")
}
