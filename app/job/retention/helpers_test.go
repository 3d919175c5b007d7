package retention_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/job/retention"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

// site is a data directory with a keeper.
type site struct {
	*fixture.Site
	t       *testing.T
	options retention.Options
	keeper  *retention.Keeper
}

func newSite(t *testing.T, o retention.Options) *site {
	t.Helper()
	s := &site{Site: fixture.New(t, app.Options{Quota: o.Quota}), t: t, options: o}
	s.options.Now = s.Now
	s.restart()
	return s
}

// keeping returns a site whose organizations all have these rules.
func keeping(t *testing.T, r retention.Rules) *site {
	t.Helper()
	return newSite(t, retention.Options{Rules: func(string) retention.Rules { return r }})
}

// restart replaces the keeper, as a restart of the service does.
func (s *site) restart() { s.keeper = retention.New(s.Store, s.Blobs, s.Jobs, s.options) }

// retain runs one pass of retention and describes what it deleted.
func (s *site) retain() []string {
	s.t.Helper()
	var deleted []app.Expired
	result, err := s.keeper.DeleteExpired(s.t.Context(), func(e app.Expired) { deleted = append(deleted, e) })
	must.OK(s.t, err)
	if result.Doubt {
		s.t.Error("retention does not trust the clock")
	}
	must.Equal(s.t, "deletions that retention counts", result.Deleted, len(deleted))
	return describe(deleted)
}

// retainFor advances the clock, running a pass of retention at least every 12 hours.
func (s *site) retainFor(d time.Duration) (deleted []string) {
	s.t.Helper()
	for d > 0 {
		step := min(d, 12*time.Hour)
		s.Advance(step)
		deleted = append(deleted, s.retain()...)
		d -= step
	}
	return deleted
}

// prune returns everything that the pages of a prune delete.
func (s *site) prune(r retention.PruneRequest) (deleted []app.Expired) {
	s.t.Helper()
	for {
		page, err := s.keeper.Prune(s.t.Context(), r)
		must.OK(s.t, err)
		deleted = append(deleted, page.Jobs...)
		if r.After = page.Next; page.Next == nil {
			return deleted
		}
	}
}

// describe returns the name of each deleted job, followed by the uploads deleted with it.
func describe(deleted []app.Expired) (names []string) {
	for _, e := range deleted {
		names = append(names, strings.Join(append([]string{e.Name}, e.Uploads...), " "))
	}
	return names
}

// jobNames returns the sorted names of the jobs, but not the subjobs, of ann's
// organization.
func (s *site) jobNames() (names []string) {
	s.t.Helper()
	must.OK(s.t, s.Store.View(s.t.Context(), func(tx app.Tx) error {
		page, err := tx.Jobs(app.JobFilter{Organization: fixture.Ann.Organization}, "", 100)
		for _, rec := range page.Jobs {
			var j app.Job
			err = errors.Join(err, json.Unmarshal(rec.JSON, &j))
			names = append(names, j.Name)
		}
		return err
	}))
	slices.Sort(names)
	return names
}

// jobDirs returns the IDs of the jobs that have a directory on disk.
func (s *site) jobDirs() (ids []app.JobID) {
	s.t.Helper()
	entries, err := os.ReadDir(s.Path("jobs"))
	must.OK(s.t, err)
	for _, e := range entries {
		ids = append(ids, app.JobID(e.Name()))
	}
	return ids
}

// sizeOf returns the total size of the files of jobs on disk.
func (s *site) sizeOf(jobs ...app.JobID) (size int64) {
	s.t.Helper()
	for _, id := range jobs {
		must.OK(s.t, filepath.WalkDir(s.Blobs.JobDir(id), func(_ string, e os.DirEntry, err error) error {
			must.OK(s.t, err)
			info, err := e.Info()
			if info.Mode().IsRegular() {
				size += info.Size()
			}
			return err
		}))
	}
	return size
}

// completed runs a new job to success, with a result of the given size.
func (s *site) completed(by app.Caller, name, settings string, bytes int) app.JobID {
	s.t.Helper()
	id := s.Submit(by, name, settings)
	s.Complete(id, map[string]string{"out.txt": strings.Repeat("x", bytes)})
	return id
}

func (s *site) failed(by app.Caller, name string) app.JobID {
	s.t.Helper()
	id := s.Submit(by, name, `{}`)
	s.Fail(id, nil)
	return id
}

func (s *site) pin(name string) {
	s.t.Helper()
	must.OK(s.t, must.Error2(s.Jobs.Pin(s.t.Context(), fixture.Ann, name)))
}

func reading(u *app.Upload) string { return `{"input":"` + string(u.ID) + `"}` }
