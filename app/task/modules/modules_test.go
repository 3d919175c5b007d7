package modules

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// TestChangesOfALoadedModule uses a shell function as the module command.
func TestChangesOfALoadedModule(t *testing.T) {
	init := filepath.Join(t.TempDir(), "init.sh")
	const standIn = `export MODULEPATH=/m BEFORE=set
module() { echo "to stdout $*"; case $2 in
bad) echo noise >&2; echo "ERROR: no such thing" >&2; return 1 ;;
quiet) return 3 ;;
*) export PATH="/opt/$2/bin:$PATH" LOADEDMODULES="$2" LINES2="$(printf 'a\nb')"; unset GONE ;;
esac; }
`
	must.Write(t, init, standIn)
	env := []string{"PATH=/usr/bin:/bin", "GONE=x", "SAME=y"}
	changed, err := Load(t.Context(), init, []string{"good/1"}, env)
	want := map[string]string{"PATH": "/opt/good/1/bin:/usr/bin:/bin", "LINES2": "a\nb", "GONE": ""}
	must.OK(t, err)
	must.Equal(t, "changed", changed, want)
	for name, says := range map[string]string{"bad": `the modules "bad" can't be loaded: no such thing`, "quiet": `the modules "quiet" can't be loaded: exit status 3`, "-x; false": ""} {
		if _, err := Load(t.Context(), init, []string{name}, env); (err != nil) != (says != "") || err != nil && err.Error() != says {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
}

func TestFoldersOfModules(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"a/bin", "a/lib", "b/data"} {
		must.OK(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	got := Folders(map[string]string{
		"PATH": root + "/a/bin:/usr/bin", "LIBRARY": root + "/a/lib", "DATA": root + "/b/data", "TEXT": "word", "GONE": root + "/c", "ROOT": "/", "HOME_OF": "/home",
	}, []string{"PATH=/usr/bin"})
	if want := []string{root + "/a", root + "/b/data"}; !slices.Equal(got, want) {
		t.Errorf("%s, want %s", strings.Join(got, " "), strings.Join(want, " "))
	}
}
