package e2e

import (
	"os"
	"testing"

	"molrun/app/test/must"
)

func TestServiceDoesNotStartWithAnUnsafeSharedFolder(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	must.OK(t, os.Chmod(shared, 0o777))
	s := unstarted(t, "[slurm]\nshared_dir = \""+shared+"\"\n")
	s.fails(exitInvalid, shared+" is writable by others", "serve", "--listen", "127.0.0.1:0")
}
