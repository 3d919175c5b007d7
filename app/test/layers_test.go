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

// layers lists the layers of packages, which are folders, in the order of ARCHITECTURE.md: a
// package can import packages of its own layer and of earlier ones. Tests can import any
// package.
var layers = []string{
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

// layerOf returns the layer of a package of this module.
func layerOf(path string) string {
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

func TestLayersImportThoseAbove(t *testing.T) {
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
		own := slices.Index(layers, layerOf(p.ImportPath))
		if own < 0 {
			t.Errorf("%s is in no layer: move it into one", p.ImportPath)
		}
		for _, path := range p.Imports {
			if path != "molrun" && !strings.HasPrefix(path, "molrun/") {
				continue
			}
			if other := layerOf(path); slices.Index(layers, other) > own {
				t.Errorf("%s imports %s, but %s is below %s", p.ImportPath, path, other, layerOf(p.ImportPath))
			}
		}
	}
	if packages < len(layers) {
		t.Errorf("go list shows only %d packages", packages)
	}
}
