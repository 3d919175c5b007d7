package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/server/config"
	"molrun/app/server/snapshot"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
	"molrun/blobs"
	"molrun/storage/kv"
)

// directory is a data directory without a running service.
type directory struct {
	*fixture.Site
	t      *testing.T
	upload string // path in the data directory, as is job
	job    string
}

// newDirectory returns a directory with three uploads, a completed job and a failed
// one.
func newDirectory(t *testing.T) *directory {
	t.Helper()
	d := &directory{Site: fixture.New(t, app.Options{}), t: t}
	for n := range 3 {
		u := d.Upload(fixture.Ann, fmt.Sprint(n, ".txt"), strings.Repeat("x", 10))
		file, _ := blobs.UploadFile(u)
		d.upload = file.Path
	}
	id := d.Submit(fixture.Ann, "done", `{}`)
	d.Complete(id, map[string]string{"out.txt": "result\n"})
	d.job = filepath.Join("jobs", string(id))
	d.Fail(d.Submit(fixture.Ann, "failed", `{}`), map[string]string{"log": "it failed\n"})
	_, _, err := access.New(d.Store, d.Blobs, d.Now).CreateKey(t.Context(), app.Operator(), access.KeyRequest{Organization: "lab", Email: "ann@lab.example", Role: apikey.Member})
	must.OK(t, err)
	d.Close()
	return d
}

func (d *directory) config() config.Config {
	c := config.Default()
	c.Data, c.Database.FileSystem = d.Data, "any"
	return c
}

func (d *directory) check(o Options) *Report {
	d.t.Helper()
	r, err := Run(d.t.Context(), d.config(), o)
	must.OK(d.t, err)
	return r
}

func TestCheckCountsWhatItLookedAt(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	want := &Report{Jobs: 2, Uploads: 3, Keys: 1, Problems: []kv.Problem{}, Strays: []Stray{}, Foreign: []Stray{}}
	for _, name := range []string{"secret", filepath.Join(d.job, "manifest.json")} {
		info, err := os.Stat(d.Path(name))
		must.OK(t, err)
		want.Bytes += info.Size()
	}
	want.Bytes += 30 + int64(len("result\nit went well\nit failed\n"))
	want.Files = 8 // the secret, three uploads, manifest, result and two logs
	for _, want.Deep = range []bool{false, true} {
		must.Equal(t, fmt.Sprintf("deep %t (-want +got)", want.Deep), want, d.check(Options{Deep: want.Deep}))
	}
	if _, err := os.Stat(d.Path("set-aside")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder for strays: %v", err)
	}
}

func TestCheckFindsMissingAndDamagedFiles(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	result, manifest := filepath.Join(d.job, "result", "out.txt"), filepath.Join(d.job, "manifest.json")
	overwrite := func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("y", 7)), 0o600) }
	for _, tt := range []struct {
		name, file string
		damage     func(path string) error
		says       string
		deep       bool // detected only by a deep check
	}{
		{"a missing upload", d.upload, os.Remove, "is missing; copy it from a backup, or delete the upload", false},
		{"a short upload", d.upload, func(path string) error { return os.Truncate(path, 3) }, "(lab) has 3 bytes, its record says 10", false},
		{"an altered upload", d.upload, func(path string) error { return os.WriteFile(path, make([]byte, 10), 0o600) }, "(lab) has changed content", true},
		{"a missing result", result, os.Remove, "is missing; copy it from a backup, or run the job again", false},
		{"an altered result", result, overwrite, "has changed content", true},
		{"a symlink in place of a file", result, func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/etc/hostname", path)) }, "not a regular file", false},
		{"a missing manifest", manifest, os.Remove, "manifest", false},
		{"a missing secret", "secret", os.Remove, "secret", false},
	} {
		path := d.Path(tt.file)
		good, err := os.ReadFile(path)
		must.OK(t, err)
		must.OK(t, tt.damage(path))
		shallow, deep := d.check(Options{}), d.check(Options{Deep: true})
		if len(deep.Problems) != 1 || deep.Count != 1 || deep.Derivable != 0 || !strings.Contains(deep.Problems[0].Text, tt.says) {
			t.Errorf("%s: a deep check finds %+v, want %q", tt.name, deep.Problems, tt.says)
		}
		if found := shallow.Count == 1; found == tt.deep {
			t.Errorf("%s: a quick check finds %+v", tt.name, shallow.Problems)
		}
		_ = os.Remove(path) // it might not exist
		must.OK(t, os.WriteFile(path, good, 0o600))
	}
}

func TestRepairRestoresIndexesAndSetsStraysAside(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	stray := d.upload + "9" // a generation that no record names
	must.OK(t, os.WriteFile(d.Path(stray), []byte("stray"), 0o600))
	must.OK(t, os.Mkdir(d.Path("jobs", "01M7Y8K3GVW6R131MCY2J7HPKF"), 0o700))
	strays := []string{stray, "jobs/01M7Y8K3GVW6R131MCY2J7HPKF"}
	emptyIndex(t, d.Path("jobs.db"))

	found := d.check(Options{})
	if found.Count == 0 || found.Derivable != found.Count || found.SetAside != "" || !cmp.Equal(paths(found.Strays), strays) {
		t.Fatalf("before: %+v, want an index to derive and strays %q", found, strays)
	}
	r := d.check(Options{Repair: true})
	if r.Count != 0 || r.Repaired != found.Count || !cmp.Equal(paths(r.Strays), strays) || !strings.HasPrefix(r.SetAside, "set-aside/") {
		t.Errorf("repair: %+v", r)
	}
	for _, name := range strays {
		if _, err := os.Stat(d.Path(r.SetAside, name)); err != nil {
			t.Error(err)
		}
	}
	if r := d.check(Options{Deep: true}); r.Count != 0 || len(r.Strays) != 0 || r.Jobs != 2 {
		t.Errorf("afterwards: %+v", r)
	}
}

func paths(strays []Stray) []string {
	all := []string{}
	for _, s := range strays {
		all = append(all, s.Path)
	}
	return all
}

// TestCheckSpeaksOfNamesAndReportsStrangers checks the text shown to an administrator.
func TestCheckSpeaksOfNamesAndReportsStrangers(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	for name, text := range map[string]string{"notes.txt": "mine", "jobs/notes": "12", "uploads/notes": "123", "uploads/tmp/arriving": "x", "kept/JOB-1": "", "workers/P": ""} {
		must.OK(t, os.MkdirAll(filepath.Dir(d.Path(name)), 0o700))
		must.OK(t, os.WriteFile(d.Path(name), []byte(text), 0o600))
	}
	emptyIndex(t, d.Path("jobs.db"))
	must.OK(t, os.Remove(d.Path(d.upload)))
	r := d.check(Options{})
	all := ""
	for _, p := range r.Problems {
		all += p.Text + "\n"
		if recordID.MatchString(strings.ReplaceAll(p.Text, d.upload, "")) || strings.Contains(p.Text, "{") {
			t.Errorf("an ID or a raw value in %q", p.Text)
		}
	}
	for _, want := range []string{`of ann@lab.example (lab)`, ` of upload "`, "is missing; copy it from a backup, or delete the upload and send the file again", ` is missing an entry for job "`} {
		must.Contain(t, "the text", all, want)
	}
	if want := []string{"notes.txt", "jobs/notes", "uploads/notes"}; !cmp.Equal(paths(r.Foreign), want) || r.Foreign[1].Bytes != 2 || r.Foreign[1].Changed.IsZero() {
		t.Errorf("foreign files %+v, want %q", r.Foreign, want)
	}
	if r := d.check(Options{Repair: true}); len(r.Strays) != 0 || len(r.Foreign) != 3 {
		t.Errorf("after a repair: %+v", r)
	}
}

// emptyIndex removes an entry from the index of names.
func emptyIndex(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	must.OK(t, err)
	must.OK(t, db.Update(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("jobs.name")).Cursor()
		c.First()
		return c.Delete()
	}))
	must.OK(t, db.Close())
}

func TestRepairLeavesWhatOnlyABackupBringsBack(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	must.OK(t, os.Remove(d.Path(d.upload)))
	if r := d.check(Options{Repair: true}); r.Count != 1 || r.Repaired != 0 {
		t.Errorf("%+v, want the missing upload", r)
	}
}

func TestCheckReportsCommitsThatTheDiskHasLost(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	found, err := filepath.Glob(d.Path("jobs.db.*"))
	must.OK(t, err)
	for _, path := range found {
		text := must.Read(t, path)
		must.OK(t, os.WriteFile(path, []byte(strings.Replace(text, `"commit":`, `"commit":9`, 1)), 0o600))
	}
	if r := d.check(Options{}); r.Count != 1 || !strings.Contains(r.Problems[0].Text, "are lost") {
		t.Errorf("%+v, beside the database are %q", r, found)
	}
}

// While the service runs, a recent file might be about to be recorded, and a concurrent
// repair would damage the service's data.
func TestStraysOfALiveDirectoryHaveToBeOld(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	stray := d.upload + "9"
	must.OK(t, os.WriteFile(d.Path(stray), nil, 0o600))
	info, err := os.Stat(d.Path(stray))
	must.OK(t, err)
	for age, want := range map[time.Duration][]string{0: {}, strayAge - 1: {}, strayAge: {stray}} {
		must.OK(t, snapshot.WithSnapshot(t.Context(), d.config(), func(_ context.Context, s *snapshot.Snapshot) error {
			s.Live, s.Taken = true, info.ModTime().Add(age)
			r := Report{}
			err := r.findStrays(s, false)
			if !cmp.Equal(paths(r.Strays), want) || r.Young != 1-len(want) {
				t.Errorf("strays after %s: %+v, want %q", age, r, want)
			}
			if repair := r.findStrays(s, true); (repair == nil) != (len(want) == 0) {
				t.Errorf("repair of a live directory after %s: %v", age, repair)
			}
			return err
		}))
	}
	if _, err := os.Stat(d.Path(stray)); err != nil {
		t.Error(err)
	}
}

// TestCheckEndsWithItsContext ends the context at each point where a check queries it.
func TestCheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	for asked := 1; ; asked++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := &endingContext{Context: ctx, left: asked, end: cancel}
		r := Report{Deep: true}
		must.OK(t, snapshot.WithSnapshot(t.Context(), d.config(), func(_ context.Context, s *snapshot.Snapshot) error {
			if err := r.checkFiles(c, s); !errors.Is(err, errEnough) && c.left <= 0 {
				t.Errorf("it is over when asked %d times, and the check ends with %v after %d files", asked, err, r.Files)
			}
			return nil
		}))
		cancel(nil)
		if r.Count > 0 {
			t.Errorf("an end counts as a problem: %+v", r.Problems)
		}
		if c.left > 0 {
			return
		}
	}
}

var errEnough = errors.New("enough")

// endingContext ends after a number of queries.
type endingContext struct {
	context.Context
	left int
	end  context.CancelCauseFunc
}

func (c *endingContext) Err() error {
	if c.left--; c.left == 0 {
		c.end(errEnough)
	}
	return c.Context.Err()
}

func TestFolderWithoutADatabaseIsNoDataDirectory(t *testing.T) {
	t.Parallel()
	for _, repair := range []bool{false, true} {
		c := config.Default()
		c.Data = t.TempDir()
		if _, err := Run(t.Context(), c, Options{Repair: repair}); err == nil {
			t.Errorf("repair %t: it is sound", repair)
		}
	}
}

// A repair does not run if the check fails, and a failed repair does not return a report.
func TestRepairThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(d *directory) error{
		"a file in place of the uploads": func(d *directory) error {
			return errors.Join(os.RemoveAll(d.Path("uploads")), os.WriteFile(d.Path("uploads"), nil, 0o600))
		},
		"no place for the copy": func(d *directory) error { return os.MkdirAll(d.Path("jobs.db.before-repair", "full"), 0o700) },
	} {
		d := newDirectory(t)
		emptyIndex(t, d.Path("jobs.db"))
		before, err := os.ReadFile(d.Path("jobs.db"))
		must.OK(t, err)
		must.OK(t, spoil(d))
		if r, err := Run(t.Context(), d.config(), Options{Repair: true}); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
		if after, err := os.ReadFile(d.Path("jobs.db")); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the database has changed", name)
		}
	}
}

func TestFilesAreNotCheckedAgainstRecordsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	d := newDirectory(t)
	damagePages(t, d.Path("jobs.db"))
	r, err := Run(t.Context(), d.config(), Options{})
	if err != nil || r.Count == 0 || r.Files != 0 {
		t.Errorf("%+v, %v, want problems of the database alone", r, err)
	}
}

// damagePages overwrites the beginning of every page with job records, since the set of
// pages in use differs from run to run.
func damagePages(t *testing.T, path string) {
	t.Helper()
	const page = 4096
	data, err := os.ReadFile(path)
	must.OK(t, err)
	for at := 0; at < len(data); at += page {
		if bytes.Contains(data[at:at+page], []byte(`"jobName"`)) {
			copy(data[at:], make([]byte, 64))
		}
	}
	must.OK(t, os.WriteFile(path, data, 0o600))
}

func TestReportsListABoundedNumberOfProblems(t *testing.T) {
	t.Parallel()
	var r Report
	for n := range maxProblems + 2 {
		r.problemf("problem %d", n)
	}
	if r.Count != maxProblems+2 || len(r.Problems) != maxProblems || r.Problems[0].Text != "problem 0" {
		t.Errorf("%d problems, %d listed", r.Count, len(r.Problems))
	}
}
