package builtin

import (
	"io/fs"
	"slices"
	"testing"

	"molrun/app/test/must"
)

// TestTypesTakeTheirScripts reads the folder of a type in each way that callers do.
func TestTypesTakeTheirScripts(t *testing.T) {
	folder := folderOf("conformers")
	var names []string
	must.OK(t, fs.WalkDir(folder, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, name)
			_, err = fs.ReadFile(folder, name)
		}
		return err
	}))
	for _, want := range []string{"algorithm.toml", "conformers.py", "molecules.py"} {
		if !slices.Contains(names, want) {
			t.Errorf("the folder lacks %s: %q", want, names)
		}
	}
	if slices.Contains(names, "summary.awk") || !slices.IsSorted(names) {
		t.Errorf("the folder has %q", names)
	}
}

// TestEachSharedScriptIsTaken finds shared scripts that too few types use, or that a type
// also has itself.
func TestEachSharedScriptIsTaken(t *testing.T) {
	scripts, err := fs.ReadDir(folders, lib)
	must.OK(t, err)
	must.Equal(t, "scripts of lib that are listed", len(scripts), len(takers))
	for _, script := range scripts {
		takenBy := takers[script.Name()]
		if len(takenBy) < 2 {
			t.Errorf("%s is taken by %q: let several types take it, or move it to its type", script.Name(), takenBy)
		}
		for _, name := range takenBy {
			if !slices.Contains(types(), name) {
				t.Errorf("%s is taken by %s, which is no type", script.Name(), name)
			}
			if _, err := folders.Open(name + "/" + script.Name()); err == nil {
				t.Errorf("%s has a %s of its own", name, script.Name())
			}
		}
	}
	if slices.Contains(types(), lib) {
		t.Error("lib is a type")
	}
}
