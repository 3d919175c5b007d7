package storage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
	"molrun/app/job/apikey"
)

// There are only a few values, so that records share them, and they are awkward: some are
// prefixes or substrings of others.
var (
	someOrganizations = []string{"lab", "la", "lab\x00"}
	someEmails        = []string{"ann@lab", "bob@lab", "b", "ann@lab\x00\x03"}
	someTypes         = []string{"echo", "fold", "e"}
	someExecutors     = []string{"local", "slurm"}
	someTags          = []app.Tag{{Key: "a", Value: "x"}, {Key: "a", Value: "xx"}, {Key: "ax", Value: "x"}, {Key: "B\x00", Value: "a:x"}}
	someNotes         = []string{"", "Probe X", "a:xx\nÉtude"}
	someResults       = []string{`{"e":-7.5,"f":0}`, `{"e":-0.0}`, `{"e":0}`, `{"e":-7.25,"g":"NaN","é":true}`, `{"e":1e300}`, `{"e":7}`, `{"e":"7"}`, `{"f":[1]}`}
	someFolders       = []string{"inputs", "inputs/a", "in"}
	someDigests       = []string{"00ff", "00", "no hex"}
	someFilenames     = []string{"a.pdb", "b.pdb", "a"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// simulation makes the same random changes to a store and to a model.
type simulation struct {
	r    *rand.Rand
	last int // number of the last ID
	*model
}

// newID returns an ascending ID, or sometimes one between older ones, which a store must
// accept too.
func (s *simulation) newID() string {
	s.last += 2 + s.r.IntN(3)
	n := s.last
	if s.r.IntN(8) == 0 {
		n = s.r.IntN(s.last)
	}
	id := testID(n)
	id[sortid.Size-1] = byte(s.r.IntN(256))
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

// newJob returns a job in any possible state.
func (s *simulation) newJob() *app.Job {
	id := s.newID()
	j := &app.Job{
		ID:           app.JobID(id),
		Name:         pick(s.r, []string{"job ", "Job \\\"É\" "}) + id,
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
		j.Private.References = append(j.Private.References, s.reference())
	}
	s.setState(j)
	return j
}

func (s *simulation) reference() app.Reference {
	if s.r.IntN(2) == 0 {
		return app.Reference{Setting: "a", Upload: app.UploadID(testID(s.r.IntN(20)).String()), Generation: 1}
	}
	return app.Reference{Setting: "b", Job: jobID(s.r.IntN(20)), Path: "out.pdb"}
}

func (s *simulation) setState(j *app.Job) {
	j.Tags, j.Note = nil, pick(s.r, someNotes)
	for range s.r.IntN(3) {
		tag := pick(s.r, someTags)
		if j.Tags == nil {
			j.Tags = map[string]string{}
		}
		j.Tags[tag.Key] = tag.Value
	}
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
	j.Metrics = nil
	if j.Status.Finished() && s.r.IntN(4) > 0 {
		j.Metrics = &app.Metrics{RunSeconds: 1, Results: json.RawMessage(pick(s.r, someResults))}
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

// anyOf returns the ID of a random record. The same seed always gives the same IDs.
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

// change moves a job to another state and updates the counts of its batch.
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

// recount moves a row from its old count to that of a status, or removes it from the
// counts.
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

// drop removes a job with all its rows, or a row from its batch.
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

// dropMany empties whole pages of the database in one transaction.
func (s *simulation) dropMany(tx app.Tx) error {
	ids := slices.Sorted(maps.Keys(s.jobs))
	from := s.r.IntN(len(ids) + 1)
	for _, id := range ids[from:min(len(ids), from+s.r.IntN(120))] {
		if s.jobs[id] == nil {
			continue // dropped with its batch
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
		SHA256:       pick(s.r, someDigests),
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
	return errors.Join(tx.PutKey(k), tx.PutDefinition(sha256Hex(text), []byte(text)))
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
