package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"molrun/app/test/must"
)

func TestReadableProgramDirectoryIsMinimal(t *testing.T) {
	prefix := t.TempDir()
	must.OK(t, os.MkdirAll(filepath.Join(prefix, "conda-meta"), 0o700))
	for program, want := range map[string]string{
		"/opt/tool/tool":                    "/opt/tool",
		"/opt/tool/bin/tool":                "/opt/tool/bin",
		"/opt/tool.sh":                      "/opt/tool.sh",
		"/home/ann/tool.sh":                 "/home/ann/tool.sh",
		"/root/tool.sh":                     "/root/tool.sh",
		"/tool":                             "/tool",
		filepath.Join(prefix, "bin", "gmx"): prefix,
	} {
		if got := programFolders(program); len(got) != 1 || got[0] != want {
			t.Errorf("for %s the directories %s are readable, want %s", program, got, want)
		}
	}
}
