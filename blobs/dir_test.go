package blobs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/test/must"
	"molrun/blobs/link"
	"molrun/blobs/result"
)

func TestOpenMakesDirectoriesPrivate(t *testing.T) {
	top := filepath.Join(t.TempDir(), "new", "data")
	startIn(t, top)
	must.OK(t, os.Chmod(filepath.Join(top, "uploads"), 0o755))
	f := startIn(t, top)
	for _, name := range []string{".", "uploads", "uploads/tmp", "jobs", "trash"} {
		info, err := os.Stat(filepath.Join(f.path, name))
		if err != nil || info.Mode() != os.ModeDir|0o700 {
			t.Errorf("%s: mode %v, err %v", name, info.Mode(), err)
		}
	}
	id := app.UploadID(f.id())
	must.Equal(t, "UploadPath", f.UploadPath(id, 7), filepath.Join(f.path, "uploads", string(id[24:]), string(id)+".7"))
}

func TestOpenRefusesAnUnsafeDirectory(t *testing.T) {
	shared := t.TempDir()
	occupied := t.TempDir()
	must.OK(t, errors.Join(
		os.Chmod(shared, 0o770),
		os.WriteFile(filepath.Join(occupied, "jobs"), nil, 0o600),
	))
	secret, err := link.LoadSecret(t.TempDir())
	must.OK(t, err)
	escaping := t.TempDir()
	must.OK(t, os.Symlink(t.TempDir(), filepath.Join(escaping, "jobs")))
	for dir, want := range map[string]string{shared: "chmod 700", occupied: "not a directory", escaping: "jobs"} {
		_, err := Open(dir, Options{Now: time.Now, Secret: secret, Log: zerolog.Nop()})
		must.Fail(t, "the error", err, want)
	}
	if _, err := Open(t.TempDir(), Options{Now: time.Now}); err == nil {
		t.Error("opened without a secret")
	}
}

func TestManifestIsReadAsWritten(t *testing.T) {
	f := start(t)
	id := f.result(someResult)
	m, err := f.Manifest(id)
	must.OK(t, err)
	if m.Find("traj.xtc") != len(m.Files)-1 || m.Files[0].Name != "job.json" || m.Files[0].Path != "result/job.json" {
		t.Errorf("manifest %+v", m)
	}
	must.OK(t, f.WriteManifest(id, m))
	again, err := f.Manifest(id)
	must.OK(t, err)
	must.Equal(t, "manifest", again, m)
	if _, err := f.Manifest(app.JobID(f.id())); !errors.Is(err, fault.NotFound) {
		t.Errorf("no manifest: error %v, want NOT_FOUND", err)
	}
	must.OK(t, os.WriteFile(filepath.Join(f.path, result.ManifestName(id)), []byte(`{"files":`), 0o600))
	if _, err := f.Manifest(id); err == nil || errors.Is(err, fault.NotFound) {
		t.Errorf("damaged manifest: error %v", err)
	}
}

func TestRemovalDeletesFilesAtOnce(t *testing.T) {
	f := start(t)
	id := f.uploaded("x")
	job := f.result(someResult)
	for range 2 { // removing again is not an error
		must.OK(t, errors.Join(f.RemoveUpload(id, 1), f.RemoveJob(job)))
	}
	must.Equal(t, "files left", f.names("."), []string{"secret"})
	if err := f.RemoveJob("../uploads"); err == nil {
		t.Error("removed a directory that is not a job")
	}
	if err := f.RemoveUpload("../../secret", 1); err == nil {
		t.Error("removed a file that is not an upload")
	}
}

func TestRemovalDeletesReadOnlyDirectories(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	f := start(t)
	job := f.result(someResult)
	must.OK(t, os.Chmod(filepath.Join(f.JobDir(job), "result", "models"), 0o500))
	must.OK(t, f.RemoveJob(job))
	if names := f.names(trashDir); len(names) > 0 {
		t.Errorf("files left: %q", names)
	}
}

func TestPausedRemovalsWaitForTheLastResume(t *testing.T) {
	f := start(t)
	id := f.uploaded("x")
	job := f.result(someResult)
	first, second := f.PauseRemovals(), f.PauseRemovals()
	must.OK(t, errors.Join(f.RemoveUpload(id, 1), f.RemoveJob(job)))
	first()
	first()             // releasing twice counts once
	f.rules.forget(job) // what is served depends on the records, not the files
	for _, link := range []string{f.archiveLink(job), f.resultLink(job, 0)} {
		f.do("GET", link, "").want(t, 404, fault.NotFound)
	}
	if _, err := f.Manifest(job); err != nil {
		t.Errorf("the job was removed during the pause: %v", err)
	}
	if _, err := os.Stat(f.UploadPath(id, 1)); err != nil {
		t.Errorf("the upload was removed during the pause: %v", err)
	}
	second()
	must.Equal(t, "files left", f.names("."), []string{"secret"})
}

func TestSweepRemovesOnlyOldOrphans(t *testing.T) {
	f := start(t)
	known := f.uploaded("first")
	f.rules.uploads[known].Partial = &app.Partial{Generation: 3}
	unknown := app.UploadID(f.id())
	part := func(id app.UploadID, generation int) string {
		return fmt.Sprintf("%s/%s.%d", partialDir, id, generation)
	}
	knownJob, unknownJob := f.result(nil), f.result(nil)
	write(t, f.path, map[string]string{
		"uploads/tmp/OTHERRUN.x":      "",
		"uploads/tmp/" + f.run + ".x": "", // being received
		"trash/OTHERRUN.x/result/a":   "",
		uploadName(known, 2):          "",
		uploadName(unknown, 1):        "",
		part(known, 3):                "",
		part(known, 4):                "",
		part(unknown, 7):              "",
		"uploads/ZZ/readme.txt":       "",
		"jobs/notes/readme.txt":       "",
	})
	sweep := func() int {
		t.Helper()
		n, err := f.CollectGarbage(t.Context(),
			func(id app.UploadID, generation int) bool {
				u, err := f.rules.Upload(t.Context(), id)
				return err == nil && u.Has(generation)
			},
			func(id app.JobID) bool { return id == knownJob })
		must.OK(t, err)
		return n
	}

	f.clock.now = time.Now().Add(23 * time.Hour)
	must.Equal(t, "removed before a day has passed: the temporary file and the trash", sweep(), 2)
	f.clock.move(2 * time.Hour)
	must.Equal(t, "removed a day later: two generations, two parts and a job", sweep(), 5)
	want := []string{
		"jobs/" + string(knownJob) + "/manifest.json", "jobs/notes/readme.txt", "secret",
		uploadName(known, 1), part(known, 3), "uploads/ZZ/readme.txt", "uploads/tmp/" + f.run + ".x",
	}
	got := f.names(".")
	slices.Sort(got)
	slices.Sort(want)
	must.Equal(t, "files left, with the orphan "+string(unknownJob), got, want)
}
