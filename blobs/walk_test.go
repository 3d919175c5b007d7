package blobs

import (
	"io/fs"
	"os"
	"slices"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

func TestWalkVisitsUploadsAndJobsAlone(t *testing.T) {
	const id = "01AAAAAAAAAAAAAAAAAAAAAAAA"
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"uploads/AA/" + id + ".7": "", "uploads/AA/" + id + ".07": "", "uploads/AA/" + id: "", "uploads/AA/x.7": "",
		"uploads/tmp/" + id + ".7": "", "uploads/" + id + ".7": "", "jobs/" + id + "/manifest.json": "", "jobs/x/manifest.json": "",
	})
	root, err := os.OpenRoot(dir)
	must.OK(t, err)
	defer root.Close()
	var visited []string
	v := visitor{
		upload: func(name string, _ fs.DirEntry, of app.UploadID, generation int) error {
			if of != id || generation != 7 {
				t.Errorf("%s: upload %s, generation %d", name, of, generation)
			}
			visited = append(visited, name)
			return nil
		},
		job: func(name string, _ fs.DirEntry, _ app.JobID) error {
			visited = append(visited, name)
			return nil
		},
	}
	if err := v.walk(t.Context(), root); err != nil {
		t.Error(err)
	}
	if want := []string{"uploads/AA/" + id + ".7", "jobs/" + id}; !slices.Equal(visited, want) {
		t.Errorf("visited %q, want %q", visited, want)
	}
}
