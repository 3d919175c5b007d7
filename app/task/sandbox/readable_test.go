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

func TestPublicEntriesOfAFolderAreLetIn(t *testing.T) {
	opt := t.TempDir()
	in := func(name string) string { return filepath.Join(opt, name) }
	for name, mode := range map[string]os.FileMode{"rocm-6.0": 0o755, "private": 0o700, "hidden": 0o755} {
		must.OK(t, os.Mkdir(in(name), mode))
		must.OK(t, os.Chmod(in(name), mode))
	}
	for name, target := range map[string]string{"rocm": "/opt/rocm-6.0", "python": "/usr/bin", "outside": "/data/tool", "beside": "../data"} {
		must.OK(t, os.Symlink(target, in(name)))
	}
	v := &view{hide: []string{in("hidden")}, read: []string{in("python/python3"), "/opt/rocm-6.0/bin"}}
	must.Equal(t, "arguments", v.publicEntries(opt), []string{"--symlink", "/opt/rocm-6.0", in("rocm"), "--ro-bind-try", in("rocm-6.0"), in("rocm-6.0")})
}
