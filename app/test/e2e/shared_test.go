package e2e

import (
	"os"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestServiceDoesNotStartWithAnUnsafeSharedFolder(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	must.OK(t, os.Chmod(shared, 0o777))
	s := unstarted(t, "[slurm]\nshared_dir = \""+shared+"\"\n")
	if _, errs, code := s.run("serve", "--listen", "127.0.0.1:0"); code != exitInvalid || !strings.Contains(errs, "others may write to "+shared) {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
