package storage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"molrun/app"
	"molrun/app/apikey"
	"molrun/app/fault"
	"molrun/app/placement"
	"molrun/app/unit"
)

// model is a store as a plain map would be: it says what every answer has to
// be, by looking at all records.
type model struct {
	jobs        map[app.JobID]*app.Job
	uploads     map[app.UploadID]*app.Upload
	keys        map[string]*apikey.Key
	definitions map[string]string
	floor       app.IDBytes
}

func newModel() *model {
	return &model{
		jobs:        map[app.JobID]*app.Job{},
		uploads:     map[app.UploadID]*app.Upload{},
		keys:        map[string]*apikey.Key{},
		definitions: map[string]string{},
	}
}

// clone copies the maps; the records in them are never changed, but replaced.
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

// sorted gives the jobs that fit, oldest first.
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

func (m *model) listed(f app.JobFilter) []*app.Job {
	return m.sorted(func(j *app.Job) bool {
		return j.Organization == f.Organization &&
			(f.Email == "" || j.Email == f.Email) &&
			(f.Type == "" || j.Type == f.Type) &&
			(f.Status == "" || j.Status == f.Status) &&
			(f.Name == "" || j.Name == f.Name) &&
			(f.Batch == "" || j.Private.Batch == f.Batch) &&
			(f.Batch != "" || f.Name != "" || j.Private.Batch == "")
	})
}

func (m *model) listedUploads(f app.UploadFilter) []*app.Upload {
	var all []*app.Upload
	for _, u := range m.uploads {
		if u.Organization == f.Organization &&
			(f.Email == "" || u.Email == f.Email) &&
			(f.Folder == "" || u.Folder == f.Folder) {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b *app.Upload) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// queue gives the waiting jobs in the order of visits; which user comes first
// is the store's choice, so users are grouped but not sorted as texts are.
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

// The values are few, so that records meet, and awkward: texts that are
// parts, beginnings and continuations of one another.
var (
	someOrganizations = []string{"lab", "la", "lab\x00"}
	someEmails        = []string{"ann@lab", "bob@lab", "b", "ann@lab\x00\x03"}
	someTypes         = []string{"echo", "fold", "e"}
	someExecutors     = []string{"local", "slurm"}
	someFolders       = []string{"inputs", "inputs/a", "in"}
	someFilenames     = []string{"a.pdb", "b.pdb", "a"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// simulation makes the same random changes to a store and to a model.
type simulation struct {
	r    *rand.Rand
	last int // number of the last ID
	*model
}

// newID gives mostly rising IDs, but sometimes one between older ones, which
// a store must bear.
func (s *simulation) newID() string {
	s.last += 2 + s.r.IntN(3)
	n := s.last
	if s.r.IntN(8) == 0 {
		n = s.r.IntN(s.last)
	}
	id := testID(n)
	id[app.IDSize-1] = byte(s.r.IntN(256))
	if text := id.String(); s.jobs[app.JobID(text)] == nil && s.uploads[app.UploadID(text)] == nil {
		return text
	}
	return s.newID()
}

func (s *simulation) put(tx app.Tx, j *app.Job) error {
	s.jobs[j.ID] = j
	s.raise(string(j.ID))
	return tx.PutJob(j)
}

func (s *simulation) remove(tx app.Tx, id app.JobID) error {
	delete(s.jobs, id)
	return tx.DeleteJob(id)
}

// newJob gives a job in any state that can be.
func (s *simulation) newJob() *app.Job {
	id := s.newID()
	j := &app.Job{
		ID:           app.JobID(id),
		Name:         "job " + id,
		Type:         pick(s.r, someTypes),
		Version:      "1",
		Settings:     json.RawMessage(fmt.Sprintf(`{"text":"%0*d"}`, s.r.IntN(300), 0)),
		Organization: pick(s.r, someOrganizations),
		Email:        pick(s.r, someEmails),
		Priority:     s.r.IntN(5) - 2,
		CreatedAt:    unit.At(idOf(id).Time()),
		Executor:     pick(s.r, someExecutors),
		Private: app.Private{
			Sent:  fmt.Sprintf("%064x", s.r.Uint64()),
			Needs: placement.Resources{CPUs: s.r.IntN(8), MemoryBytes: s.r.Int64N(1 << 40), GPUs: s.r.IntN(2)},
		},
	}
	for range s.r.IntN(4) {
		j.Private.References = append(j.Private.References, s.source())
	}
	s.setState(j)
	return j
}

func (s *simulation) source() app.Reference {
	if s.r.IntN(2) == 0 {
		return app.Reference{Setting: "a", Upload: app.UploadID(testID(s.r.IntN(20)).String()), Generation: 1}
	}
	return app.Reference{Setting: "b", Job: jobID(s.r.IntN(20)), Path: "out.pdb"}
}

func (s *simulation) setState(j *app.Job) {
	j.Status = pick(s.r, app.Statuses[:])
	switch {
	case j.IsBatch(), j.Status.Finished():
		j.Private.Claimed = false
	case j.Status == app.Running:
		j.Private.Claimed = true
	default:
		j.Private.Claimed = s.r.IntN(3) == 0
	}
	j.CompletedAt, j.ResultBytes, j.Pinned = unit.Time{}, nil, s.r.IntN(4) == 0
	if j.Status.Finished() {
		j.CompletedAt = unit.At(testID(s.r.IntN(50)).Time().Add(time.Duration(s.r.IntN(3)) * 24 * time.Hour))
	}
	if j.Status == app.Completed {
		size := s.r.Int64N(1 << 40)
		j.ResultBytes = &size
	}
	j.Private.Handle, j.Private.Stop = "", false
	if j.Private.Claimed {
		j.Private.Stop = s.r.IntN(4) == 0
		j.Private.Handle = app.Handle(fmt.Sprint(s.r.IntN(1000)))
	}
}

func (s *simulation) putBatch(tx app.Tx) error {
	parent := s.newJob()
	parent.Counts = &app.Counts{}
	parent.Settings = nil
	s.setState(parent)
	for row := range s.r.IntN(30) {
		j := s.newJob()
		j.Organization, j.Email, j.Type = parent.Organization, parent.Email, parent.Type
		j.Batch, j.Private.Batch, j.Private.Row = parent.Name, parent.ID, row
		*parent.Counts.Of(j.Status)++
		if err := s.put(tx, j); err != nil {
			return err
		}
	}
	return s.put(tx, parent)
}

// any gives a record's ID, the same in each run with one seed.
func anyOf[K cmp.Ordered, V any](r *rand.Rand, from map[K]V) (none K) {
	if len(from) == 0 {
		return none
	}
	return pick(r, slices.Sorted(maps.Keys(from)))
}

func copyJob(j *app.Job) *app.Job {
	c := *j
	if j.Counts != nil {
		counts := *j.Counts
		c.Counts = &counts
	}
	return &c
}

// change moves a job to another state and keeps its batch's counts.
func (s *simulation) change(tx app.Tx, id app.JobID) error {
	old := s.jobs[id]
	j := copyJob(old)
	j.Priority = s.r.IntN(5) - 2
	s.setState(j)
	if err := s.put(tx, j); err != nil {
		return err
	}
	return s.recount(tx, old, j.Status)
}

// recount takes a row from its old count and, with a status, into another.
func (s *simulation) recount(tx app.Tx, old *app.Job, now app.Status) error {
	if old.Private.Batch == "" {
		return nil
	}
	parent := copyJob(s.jobs[old.Private.Batch])
	*parent.Counts.Of(old.Status)--
	if now != "" {
		*parent.Counts.Of(now)++
	}
	return s.put(tx, parent)
}

// drop removes a job with all rows, or a row from its batch.
func (s *simulation) drop(tx app.Tx, id app.JobID) error {
	old := s.jobs[id]
	if old.IsBatch() {
		for row, err := range tx.Subjobs(id, "") {
			if err != nil {
				return err
			}
			if err := s.remove(tx, row.ID); err != nil {
				return err
			}
		}
	}
	if err := s.remove(tx, id); err != nil {
		return err
	}
	return s.recount(tx, old, "")
}

// dropMany empties whole pages within one transaction.
func (s *simulation) dropMany(tx app.Tx) error {
	ids := slices.Sorted(maps.Keys(s.jobs))
	from := s.r.IntN(len(ids) + 1)
	for _, id := range ids[from:min(len(ids), from+s.r.IntN(120))] {
		if s.jobs[id] == nil {
			continue // went with its batch
		}
		if err := s.drop(tx, id); err != nil {
			return err
		}
	}
	return nil
}

func (s *simulation) putUpload(tx app.Tx) error {
	u := &app.Upload{
		ID:           app.UploadID(s.newID()),
		Organization: pick(s.r, someOrganizations),
		Email:        pick(s.r, someEmails),
		Folder:       pick(s.r, someFolders),
		Filename:     pick(s.r, someFilenames),
		Size:         s.r.Int64N(1 << 40),
		CreatedAt:    unit.At(testID(s.r.IntN(50)).Time()),
	}
	if old := s.uploads[anyOf(s.r, s.uploads)]; old != nil && s.r.IntN(3) == 0 {
		*u = *old
		u.Generation++
		u.CompletedAt = unit.At(testID(s.last).Time())
	}
	s.uploads[u.ID] = u
	s.raise(string(u.ID))
	return tx.PutUpload(u)
}

func (s *simulation) dropUpload(tx app.Tx) error {
	id := anyOf(s.r, s.uploads)
	if id == "" {
		return nil
	}
	delete(s.uploads, id)
	return tx.DeleteUpload(id)
}

func (s *simulation) putAccount(tx app.Tx) error {
	k := &apikey.Key{ID: fmt.Sprint(s.r.IntN(10)), Email: pick(s.r, someEmails), Disabled: s.r.IntN(2) == 0}
	s.keys[k.ID] = k
	text := fmt.Sprint("definition ", s.r.IntN(10))
	s.definitions[text] = text
	return errors.Join(tx.PutKey(k), tx.PutDefinition(text, []byte(text)))
}

func (s *simulation) dropKey(tx app.Tx) error {
	id := anyOf(s.r, s.keys)
	if id == "" {
		return nil
	}
	delete(s.keys, id)
	return tx.DeleteKey(id)
}

// step makes one random change.
func (s *simulation) step(tx app.Tx) error {
	switch n := s.r.IntN(100); {
	case n < 30:
		return s.put(tx, s.newJob())
	case n < 35:
		return s.putBatch(tx)
	case n < 60 && len(s.jobs) > 0:
		return s.change(tx, anyOf(s.r, s.jobs))
	case n < 70 && len(s.jobs) > 0:
		return s.drop(tx, anyOf(s.r, s.jobs))
	case n < 72:
		return s.dropMany(tx)
	case n < 85:
		return s.putUpload(tx)
	case n < 90:
		return s.dropUpload(tx)
	case n < 97:
		return s.putAccount(tx)
	}
	return s.dropKey(tx)
}

var errUndo = errors.New("undo")

// TestStoreAgreesWithModel makes random changes, a third of which are undone,
// and compares every kind of answer: while they are made, once they are
// committed, and after the store was opened again.
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
				if s.Floor() != sim.floor {
					t.Errorf("floor %s, want %s", s.Floor(), sim.floor)
				}
				if t.Failed() {
					t.Fatalf("the first disagreement is in round %d", round)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openAt(t, path, Options{})
			view(t, s, func(tx app.Tx) error { agree(t, tx, sim); return nil })
			checkStore(t, s)
		})
	}
}

// differ gives what differs in words; the words are dear.
func differ(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return gocmp.Diff(want, got)
}

// agree compares all answers of tx with those of the model.
func agree(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	agreeJobs(t, tx, s)
	agreeListings(t, tx, s)
	agreeQueue(t, tx, s)
	agreeUploads(t, tx, s)
	agreeUsage(t, tx, s)
	agreeFinished(t, tx, s)
	agreeAccounts(t, tx, s)
}

func agreeJobs(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	for _, j := range s.sorted(func(*app.Job) bool { return s.r.IntN(4) == 0 }) {
		got, err := tx.Job(j.ID)
		if diff := differ(j, got); err != nil || diff != "" {
			t.Errorf("job %s: %v\n%s", j.ID, err, diff)
		}
		named, err := tx.JobNamed(j.Organization, j.Name)
		if err != nil || named.ID != j.ID {
			t.Errorf("job named %q: %v, %v", j.Name, named, err)
		}
		want, _ := json.Marshal(j)
		if shown, err := tx.JobJSON(j.ID); err != nil || !bytes.Equal(shown, want) {
			t.Errorf("record of %s: %s, %v, want %s", j.ID, shown, err, want)
		}
	}
	absent := app.JobID(s.newID())
	_, e1 := tx.Job(absent)
	_, e2 := tx.JobNamed("lab", "")
	_, e3 := tx.JobJSON(absent)
	if !errors.Is(e1, fault.NotFound) || !errors.Is(e2, fault.NotFound) || !errors.Is(e3, fault.NotFound) {
		t.Errorf("an absent job: %v, %v, %v", e1, e2, e3)
	}
	claimed := s.sorted(func(j *app.Job) bool { return j.Private.Claimed })
	agreeWalk(t, "active", tx.Active(), claimed)
	agreeClaims(t, tx, claimed)
}

func agreeClaims(t *testing.T, tx app.Tx, jobs []*app.Job) {
	t.Helper()
	var want, got []app.Claimed
	for _, j := range jobs {
		want = append(want, app.Claimed{Job: j.ID, Attempt: j.Attempts, Stop: j.Private.Stop})
	}
	for c, err := range tx.Claims() {
		if err != nil {
			t.Error(err)
		}
		got = append(got, c)
	}
	if diff := differ(want, got); diff != "" {
		t.Errorf("claims: %s", diff)
	}
}

func agreeWalk(t *testing.T, what string, walk iter.Seq2[*app.Job, error], want []*app.Job) {
	t.Helper()
	var got []*app.Job
	for j, err := range walk {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		got = append(got, j)
	}
	if diff := differ(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func agreeListings(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	for range 10 {
		f := app.JobFilter{Organization: pick(s.r, someOrganizations)}
		if s.r.IntN(2) == 0 {
			f.Email = pick(s.r, someEmails)
		}
		if s.r.IntN(2) == 0 {
			f.Type = pick(s.r, someTypes)
		}
		if s.r.IntN(2) == 0 {
			f.Status = pick(s.r, app.Statuses[:])
		}
		if j := s.jobs[anyOf(s.r, s.jobs)]; j != nil {
			switch s.r.IntN(4) {
			case 0:
				f.Name = j.Name
			case 1:
				f.Batch, f.Organization = j.ID, j.Organization
				if j.Private.Batch != "" {
					f.Batch = j.Private.Batch
				}
			case 2:
				f.Name, f.Batch = j.Name, j.Private.Batch
			}
		}
		agreePages(t, tx, s, f)
	}
	for id, parent := range s.jobs {
		if !parent.IsBatch() || s.r.IntN(3) > 0 {
			continue
		}
		status := pick(s.r, append(app.Statuses[:], ""))
		agreeWalk(t, "subjobs", tx.Subjobs(id, status), s.sorted(func(j *app.Job) bool {
			return j.Private.Batch == id && (status == "" || j.Status == status)
		}))
	}
}

// agreePages reads a listing to its end, or begins it anywhere.
func agreePages(t *testing.T, tx app.Tx, s *simulation, f app.JobFilter) {
	t.Helper()
	want := s.listed(f)
	slices.Reverse(want)
	before := app.JobID("")
	if s.r.IntN(3) == 0 {
		before = app.JobID(s.newID())
		want = slices.DeleteFunc(want, func(j *app.Job) bool { return j.ID >= before })
	}
	limit := 1 + s.r.IntN(40)
	for {
		page, err := tx.Jobs(f, before, limit)
		if err != nil {
			t.Errorf("list %+v: %v", f, err)
			return
		}
		head := want[:min(limit, len(want))]
		want = want[len(head):]
		if page.More != (len(want) > 0) || len(page.Jobs) != len(head) {
			t.Errorf("list %+v before %q: %d and more %v, want %d and more %v",
				f, before, len(page.Jobs), page.More, len(head), len(want) > 0)
			return
		}
		for i, j := range head {
			shown, _ := json.Marshal(j)
			if page.Jobs[i].ID != j.ID || !bytes.Equal(page.Jobs[i].JSON, shown) {
				t.Errorf("list %+v: %s, want %s", f, page.Jobs[i].JSON, shown)
			}
			before = j.ID
		}
		if !page.More {
			return
		}
	}
}

// agreeQueue visits with random answers, and follows them in the model.
func agreeQueue(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	for _, executor := range someExecutors {
		want := s.queue(executor)
		err := tx.Queue(executor, func(w app.Waiting) app.Visit {
			if len(want) == 0 {
				t.Errorf("queue of %s: visit of %+v, want the end", executor, w)
				return app.EndVisit
			}
			j := want[0]
			if diff := differ(waitingOf(j), w); diff != "" {
				t.Errorf("queue of %s: %s", executor, diff)
			}
			switch n := s.r.IntN(20); {
			case n == 0:
				want = nil
				return app.EndVisit
			case n < 8:
				want = slices.DeleteFunc(want, func(k *app.Job) bool {
					return k.Priority == j.Priority && k.Organization == j.Organization && k.Email == j.Email
				})
				return app.NextUser
			}
			want = want[1:]
			return app.NextJob
		})
		if err != nil || len(want) > 0 {
			t.Errorf("queue of %s: %v, %d jobs were not visited", executor, err, len(want))
		}
	}
	for n := range 20 {
		source := testID(n).String()
		needed := s.sorted(func(j *app.Job) bool {
			return !j.Status.Finished() && slices.ContainsFunc(j.Private.References, func(src app.Reference) bool {
				return string(src.Upload) == source || string(src.Job) == source
			})
		})
		got, err := tx.NeededBy(source)
		switch {
		case len(needed) == 0 && !errors.Is(err, fault.NotFound):
			t.Errorf("%s is needed by %s, %v, want by none", source, got, err)
		case len(needed) > 0 && (err != nil || got != needed[0].ID):
			t.Errorf("%s is needed by %s, %v, want by %s", source, got, err, needed[0].ID)
		}
	}
}

func waitingOf(j *app.Job) app.Waiting {
	return app.Waiting{
		ID:           j.ID,
		Organization: j.Organization,
		Email:        j.Email,
		Priority:     j.Priority,
		Needs:        j.Private.Needs,
	}
}

func agreeUploads(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	f := app.UploadFilter{Organization: pick(s.r, someOrganizations)}
	if s.r.IntN(2) == 0 {
		f.Email = pick(s.r, someEmails)
	}
	if s.r.IntN(2) == 0 {
		f.Folder = pick(s.r, someFolders)
	}
	want := s.listedUploads(f)
	slices.Reverse(want)
	var got []*app.Upload
	for more, before := true, app.UploadID(""); more; {
		page, err := tx.Uploads(f, before, 3)
		if err != nil {
			t.Errorf("list files %+v: %v", f, err)
			return
		}
		got = append(got, page.Uploads...)
		if more = page.More; more {
			before = got[len(got)-1].ID
		}
	}
	if diff := differ(want, got); diff != "" {
		t.Errorf("list files %+v: %s", f, diff)
	}

	organization, email := pick(s.r, someOrganizations), pick(s.r, someEmails)
	folder, filename := pick(s.r, someFolders), pick(s.r, someFilenames)
	named, err := tx.UploadNamed(organization, email, folder, filename)
	var newest *app.Upload
	for _, u := range s.listedUploads(app.UploadFilter{Organization: organization, Email: email, Folder: folder}) {
		if u.Filename == filename && u.Completed() {
			newest = u
		}
	}
	if diff := differ(newest, named); diff != "" || (newest == nil) != errors.Is(err, fault.NotFound) {
		t.Errorf("file %s/%s: %v\n%s", folder, filename, err, diff)
	}
	if newest != nil {
		if u, err := tx.Upload(newest.ID); err != nil || !reflect.DeepEqual(u, newest) {
			t.Errorf("file %s: %+v, %v", newest.ID, u, err)
		}
	}
}

func agreeAccounts(t *testing.T, tx app.Tx, s *simulation) {
	t.Helper()
	var want []*apikey.Key
	for _, id := range slices.Sorted(maps.Keys(s.keys)) {
		want = append(want, s.keys[id])
		if k, err := tx.Key(id); err != nil || !reflect.DeepEqual(k, s.keys[id]) {
			t.Errorf("key %s: %+v, %v", id, k, err)
		}
	}
	got, err := tx.Keys()
	if diff := differ(want, got); err != nil || diff != "" {
		t.Errorf("keys: %v\n%s", err, diff)
	}
	for n := range 10 {
		digest := fmt.Sprint("definition ", n)
		text, err := tx.Definition(digest)
		if string(text) != s.definitions[digest] || (err == nil) != (s.definitions[digest] != "") {
			t.Errorf("definition %q: %q, %v", digest, text, err)
		}
	}
}
