package test

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// packageGroups lists the groups of packages, which are top-level directories, in
// dependency order: a package can import packages of its own group and of earlier ones.
// Tests can import any package.
var packageGroups = []string{
	"app/base",
	"app/engine",
	"app/task",
	"app/algorithm",
	"app/job", // includes the domain package app
	"app/executor",
	"app/runner",
	"blobs",
	"storage",
	"app/client",
	"web",
	"app/server",
	"app/cli",
	"main", // the program
	"app/test",
}

// groupOf returns the group of a package of this module.
func groupOf(path string) string {
	switch path = strings.TrimPrefix(strings.TrimPrefix(path, "molrun"), "/"); path {
	case "":
		return "main"
	case "app":
		return "app/job"
	}
	parts := strings.Split(path, "/")
	if parts[0] == "app" {
		return strings.Join(parts[:2], "/")
	}
	return parts[0]
}

func TestRoomsImportThoseAbove(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "molrun/...")
	text, err := list.Output()
	must.OK(t, err)
	packages := 0
	for d := json.NewDecoder(strings.NewReader(string(text))); ; packages++ {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		own := slices.Index(packageGroups, groupOf(p.ImportPath))
		if own < 0 {
			t.Errorf("%s is in no room: move it into one", p.ImportPath)
		}
		for _, path := range p.Imports {
			if path != "molrun" && !strings.HasPrefix(path, "molrun/") {
				continue
			}
			if room := groupOf(path); slices.Index(packageGroups, room) > own {
				t.Errorf("%s imports %s, but %s is below %s", p.ImportPath, path, room, groupOf(p.ImportPath))
			}
		}
	}
	if packages < len(packageGroups) {
		t.Errorf("go list shows only %d packages", packages)
	}
}
