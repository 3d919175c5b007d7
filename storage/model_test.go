package storage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/base/sortid"
	"molrun/app/job/apikey"
	"molrun/app/test/must"
)

// model is a store made of plain maps. It answers queries by examining all records.
type model struct {
	jobs        map[app.JobID]*app.Job
	uploads     map[app.UploadID]*app.Upload
	keys        map[string]*apikey.Key
	definitions map[string]string
	floor       sortid.ID
}

func newModel() *model {
	return &model{
		jobs:        map[app.JobID]*app.Job{},
		uploads:     map[app.UploadID]*app.Upload{},
		keys:        map[string]*apikey.Key{},
		definitions: map[string]string{},
	}
}

// clone copies the maps; records are replaced, never changed.
func (m *model) clone() *model {
	c := *m
	c.jobs, c.uploads = maps.Clone(m.jobs), maps.Clone(m.uploads)
	c.keys, c.definitions = maps.Clone(m.keys), maps.Clone(m.definitions)
	return &c
}

func (m *model) raise(text string) {
	if id := idOf(text); bytes.Compare(m.floor[:], id[:]) < 0 {
		m.floor = id
	}
}

// sorted returns the jobs that match, oldest first.
func (m *model) sorted(fits func(*app.Job) bool) []*app.Job {
	var all []*app.Job
	for _, j := range m.jobs {
		if fits(j) {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b *app.Job) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// listed returns the jobs that f selects, in its order.
func (m *model) listed(f app.JobFilter) []*app.Job {
	all := m.sorted(func(j *app.Job) bool {
		at := idOf(j.ID).Time()
		if f.ByCompletion {
			at = j.CompletedAt.Time
		}
		return j.Organization == f.Organization &&
			(f.Email == "" || j.Email == f.Email) &&
			(f.Type == "" || j.Type == f.Type) &&
			(len(f.Statuses) == 0 || slices.Contains(f.Statuses, j.Status)) &&
			(f.Name == "" || j.Name == f.Name) &&
			(f.Batch == "" || j.Private.Batch == f.Batch) &&
			(f.Batch != "" || f.Name != "" || j.Private.Batch == "") &&
			(!f.ByCompletion || j.Status.Finished()) &&
			(f.From.IsZero() || !at.Before(f.From)) &&
			(f.Until.IsZero() || at.Before(f.Until)) &&
			hasTags(j, f.Tags) && hasText(j, f.Search)
	})
	if f.ByCompletion {
		slices.SortStableFunc(all, func(a, b *app.Job) int { return a.CompletedAt.Compare(b.CompletedAt.Time) })
	}
	if f.Metric != "" {
		slices.SortStableFunc(all, func(a, b *app.Job) int { return compareByMetric(f, a, b) })
		return all
	}
	if !f.Ascending {
		slices.Reverse(all)
	}
	return all
}

// compareByMetric compares rows by a metric; rows without it come last.
func compareByMetric(f app.JobFilter, a, b *app.Job) int {
	x, hasX := metricsOf(a)[f.Metric].(float64)
	y, hasY := metricsOf(b)[f.Metric].(float64)
	switch {
	case !hasX || !hasY:
		return cmp.Compare(fmt.Sprint(!hasX), fmt.Sprint(!hasY))
	case f.Ascending:
		return cmp.Compare(x, y)
	}
	return cmp.Compare(y, x)
}

func metricsOf(j *app.Job) (all map[string]any) {
	if j.Metrics != nil {
		_ = json.Unmarshal(j.Metrics.Results, &all)
	}
	return all
}

// metricNames returns the names of a batch's metrics that tables show.
func (m *model) metricNames(batch app.JobID) []string {
	all := map[string]bool{}
	for _, j := range m.sorted(func(j *app.Job) bool { return j.Private.Batch == batch }) {
		for name, value := range metricsOf(j) {
			if _, list := value.([]any); !list {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func hasTags(j *app.Job, tags []app.Tag) bool {
	for _, tag := range tags {
		if value, found := j.Tags[tag.Key]; !found || value != tag.Value {
			return false
		}
	}
	return true
}

func hasText(j *app.Job, text string) bool {
	found := strings.Contains(strings.ToLower(j.Name), text) || strings.Contains(strings.ToLower(j.Note), text)
	for key, value := range j.Tags {
		found = found || strings.Contains(strings.ToLower(key+":"+value), text)
	}
	return found
}

func (m *model) listedUploads(f app.UploadFilter) []*app.Upload {
	var all []*app.Upload
	for _, u := range m.uploads {
		if u.Organization == f.Organization &&
			(f.Email == "" || u.Email == f.Email) &&
			(f.Folder == "" || u.Folder == f.Folder) &&
			(f.SHA256 == "" || u.SHA256 == f.SHA256 && u.Completed()) {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b *app.Upload) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// readers returns the jobs that read an upload or result.
func (m *model) readers(read string) []*app.Job {
	return m.sorted(func(j *app.Job) bool {
		return slices.ContainsFunc(j.Private.References, func(r app.Reference) bool {
			return string(r.Upload) == read || string(r.Job) == read
		})
	})
}

// queue returns the waiting jobs in visiting order. Users are sorted like keys: shorter
// strings first.
func (m *model) queue(executor string) []*app.Job {
	all := m.sorted(func(j *app.Job) bool {
		return j.Status == app.Queued && !j.Private.Claimed && !j.IsBatch() && j.Executor == executor
	})
	slices.SortStableFunc(all, func(a, b *app.Job) int {
		return cmp.Or(
			cmp.Compare(b.Priority, a.Priority),
			cmp.Compare(len(a.Organization), len(b.Organization)), cmp.Compare(a.Organization, b.Organization),
			cmp.Compare(len(a.Email), len(b.Email)), cmp.Compare(a.Email, b.Email),
		)
	})
	return all
}

var errUndo = errors.New("undo")

// TestStoreAgreesWithModel makes random changes, a third of which are rolled back, and
// compares the results of every kind of query before and after each commit and after
// reopening.
func TestStoreAgreesWithModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			path := newPath(t)
			s := openAt(t, path, Options{})
			sim := &simulation{r: rand.New(rand.NewPCG(seed, 1)), last: 100, model: newModel()}
			for round := range 20 {
				kept := sim.model.clone()
				fail := sim.r.IntN(3) == 0
				err := s.Update(t.Context(), func(tx app.Tx) error {
					for range 1 + sim.r.IntN(30) {
						if err := sim.step(tx); err != nil {
							return err
						}
					}
					agree(t, tx, sim)
					if fail {
						return errUndo
					}
					return nil
				})
				if fail != errors.Is(err, errUndo) || !fail && err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				if fail {
					sim.model = kept
				}
				view(t, s, func(tx app.Tx) error { agree(t, tx, sim); return nil })
				must.Equal(t, "floor", s.HighWaterMark(), sim.floor)
				if t.Failed() {
					t.Fatalf("the first disagreement is in round %d", round)
				}
			}
			last := sim.newJob() // keeps raising the high-water mark after its deletion
			update(t, s, func(tx app.Tx) error { return sim.put(tx, last) })
			update(t, s, func(tx app.Tx) error { return sim.remove(tx, last.ID) })
			must.OK(t, s.Close())
			s = openAt(t, path, Options{})
			must.Equal(t, "floor after a reopening", s.HighWaterMark(), sim.floor)
			view(t, s, func(tx app.Tx) error { agree(t, tx, sim); return nil })
			checkStore(t, s)
		})
	}
}
