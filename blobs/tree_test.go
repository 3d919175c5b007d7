package blobs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

func openTree(t *testing.T, dir string) *Tree {
	t.Helper()
	tree, err := OpenTree(dir)
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, tree.Close()) })
	return tree
}

const (
	treeJob   = app.JobID("01M7Y8K3GVW6R131MCY2J7HPKF")
	strayJob  = app.JobID("01M7Y8K3GVW6R131MCY2J7HPKG")
	treeInput = app.UploadID("01M7Y8K3DF2Q6P8R1RCJS9KHGE")
)

func TestTreeListsTheFilesOfAJob(t *testing.T) {
	dir := t.TempDir()
	const manifest = `{"files":[{"name":"a/b","path":"result/a/b","size":3,"sha256":"ab"}]}`
	job := "jobs/" + string(treeJob)
	write(t, dir, map[string]string{
		job + "/manifest.json": manifest, job + "/result/a/b": "abc", job + "/1/log": "x", job + "/1/work/out/big": "x",
	})
	tree := openTree(t, dir)
	files, err := tree.Result(treeJob)
	must.OK(t, err)
	must.Equal(t, "result", files, []File{{Path: job + "/manifest.json", Size: int64(len(manifest))}, {Path: job + "/result/a/b", Size: 3, SHA256: "ab"}})
	files, err = tree.Attempt(treeJob, 1)
	must.OK(t, err)
	must.Equal(t, "attempt without its work directory", files, []File{{Path: job + "/1/log", Size: -1}})
	if files, err := tree.Attempt(treeJob, 2); err != nil || files != nil {
		t.Errorf("missing attempt: %v, %v", files, err)
	}
	if _, err := tree.Result(strayJob); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing result: %v", err)
	}
	write(t, dir, map[string]string{job + "/manifest.json": `{"files":[{"name":"x","path":"../../secret"}]}`})
	if files, err := tree.Result(treeJob); err == nil {
		t.Errorf("accepted a manifest that leads out of its job: %v", files)
	}
}

func TestTreeListsFilesThatChange(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"audit.log": "x", "audit.log.1": "xx", "other": "x", "audit.log.d/file": "x"})
	files, err := openTree(t, dir).Changing("audit.log*")
	must.OK(t, err)
	must.Equal(t, "files", files, []File{{Path: "audit.log", Size: -1, Changing: true}, {Path: "audit.log.1", Size: -1, Changing: true}})
}

func TestTreeOpensOnlyRegularFilesInside(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"secret": "s"})
	for name, to := range map[string]string{"inside": "secret", "outside": "/etc/hostname"} {
		must.OK(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	tree := openTree(t, dir)
	for name, good := range map[string]bool{"secret": true, "inside": false, "outside": false, "../x": false, ".": false} {
		f, _, err := tree.Open(name)
		must.Equal(t, name+" is opened", err == nil, good)
		if err == nil {
			f.Close()
		}
	}
}

func TestOrphansAreFoundAndQuarantined(t *testing.T) {
	dir := t.TempDir()
	known, stale, stray := uploadName(treeInput, 7), uploadName(treeInput, 6), "jobs/"+string(strayJob)
	write(t, dir, map[string]string{
		known: "x", stale: "y", "uploads/tmp/" + string(treeInput) + ".6": "arriving", stray + "/1/log": "m", "jobs/" + string(treeJob) + "/1/log": "l",
	})
	foreign := []string{"jobs/notes", "uploads/" + string(treeInput) + ".7", "uploads/GE/" + string(treeInput), "uploads/GE/" + string(treeInput) + ".07", "uploads/GE/not-ours", "uploads/GE/x.7"}
	for _, name := range foreign {
		write(t, dir, map[string]string{name: "n"})
	}
	tree := openTree(t, dir)
	strays := func() (paths []string) {
		found, others, err := tree.Orphans(
			func(id app.UploadID, generation int) bool { return id == treeInput && generation == 7 },
			func(id app.JobID) bool { return id == treeJob },
		)
		must.OK(t, err)
		var names []string
		for _, s := range others {
			if names = append(names, s.Path); s.Bytes != 1 {
				t.Errorf("%s has %d bytes", s.Path, s.Bytes)
			}
		}
		must.Equal(t, "foreign files", names, foreign)
		for _, s := range found {
			paths = append(paths, s.Path)
		}
		return paths
	}
	found := strays()
	must.Equal(t, "orphans", found, []string{stale, stray})
	for _, path := range found {
		must.OK(t, tree.SetAside(path, "set-aside/now"))
	}
	if left := strays(); left != nil {
		t.Errorf("still there: %q", left)
	}
	for path, want := range map[string]string{stale: "y", stray + "/1/log": "m"} {
		if got, err := os.ReadFile(filepath.Join(dir, "set-aside/now", path)); err != nil || string(got) != want {
			t.Errorf("%s is %q now, %v", path, got, err)
		}
	}
}
