package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/base/digest"
	"molrun/app/server/check"
	"molrun/app/server/config"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
	"molrun/blobs"
)

// directory is a data directory without a running service, and a directory for backups.
type directory struct {
	*fixture.Site
	t       *testing.T
	backups Dir
	uploads []string // paths of three 10-byte files in the data directory
	job     string   // a completed job with the result out.txt
}

func newDirectory(t *testing.T) *directory {
	t.Helper()
	d := &directory{Site: fixture.New(t, app.Options{}), t: t, backups: Dir(filepath.Join(t.TempDir(), "backups"))}
	for n := range 3 {
		file, _ := blobs.UploadFile(d.Upload(fixture.Ann, fmt.Sprint(n, ".txt"), strings.Repeat("x", 10)))
		d.uploads = append(d.uploads, file.Path)
	}
	id := d.Submit(fixture.Ann, "done", `{}`)
	d.Complete(id, map[string]string{"out.txt": "result\n"})
	d.job = filepath.Join("jobs", string(id))
	d.Submit(fixture.Ann, "queued", `{}`)
	d.Close()
	return d
}

// configOf returns the configuration for a data directory, which tests can put on any
// file system.
func configOf(data string) config.Config {
	c := config.Default()
	c.Data, c.Database.FileSystem = data, "any"
	return c
}

// take takes a backup and checks that its files match their digests.
func (d *directory) take(o Options) *Record {
	d.t.Helper()
	o.Dir = d.backups
	r, err := TakeBackup(d.t.Context(), configOf(d.Data), o)
	must.OK(d.t, err)
	sums, sum, err := digest.ReadSums(d.backups.path(r.Name, sumsFile))
	must.OK(d.t, err)
	for name, want := range sums {
		if got, _, err := digest.New().File(d.t.Context(), d.backups.path(r.Name, name)); err != nil || got != want {
			d.t.Errorf("backup %s: %s has digest %s, %v", r.Name, name, got, err)
		}
	}
	if sum != r.Sums || len(sums) != r.Files {
		d.t.Errorf("backup %s has %d files: %+v", r.Name, len(sums), r)
	}
	return r
}

// restore restores into an empty directory next to the backups.
func (d *directory) restore(o Restore) (data string, r *Restored, err error) {
	d.t.Helper()
	data = filepath.Join(d.t.TempDir(), "restored")
	r, err = d.restoreTo(data, o)
	return data, r, err
}

func (d *directory) restoreTo(data string, o Restore) (*Restored, error) {
	o.Dir, o.Config = d.backups, configOf(data)
	if o.FinishLost == nil {
		o.FinishLost = func(context.Context, config.Config) (int, int, error) { return 0, 0, nil }
	}
	return o.Restore(d.t.Context())
}

// wantSound fails the test if a check of a data directory finds a problem.
func wantSound(t *testing.T, data string) {
	t.Helper()
	r, err := check.Run(t.Context(), configOf(data), check.Options{Deep: true})
	if err != nil || r.Count > 0 {
		t.Errorf("check of %s: %+v, %v", data, r, err)
	}
}

func wantSaid(t *testing.T, what string, got []string, says ...string) {
	t.Helper()
	if len(got) != len(says) {
		t.Errorf("%s: %q, want %q", what, got, says)
		return
	}
	for _, part := range says {
		if !strings.Contains(strings.Join(got, "\n"), part) {
			t.Errorf("%s: %q, want %q among them", what, got, part)
		}
	}
}

// missing reports whether a file does not exist.
func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}
