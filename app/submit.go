package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"molrun/app/algorithm"
	"molrun/app/base/digest"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/job/quota"
)

// Submission is a request for one job. Settings and Body are the JSON as sent; Faults are
// errors found during decoding, to be reported together with the others.
type Submission struct {
	Name       string
	Type       string
	Version    string            // "" means the algorithm's default
	Settings   *strictjson.Value // an object; nil if it has an issue in Faults
	Priority   int
	MaxRuntime int64 // seconds; 0 means the algorithm's limit
	Labels     Labels
	After      After
	Body       *strictjson.Value // the whole request body
	Faults     []fault.Field
}

// Submit queues a job. Submitting the same work again under the same name returns the
// existing job, even if its files or algorithm have since been deleted. Different work
// under that name is rejected.
func (s *Jobs) Submit(ctx context.Context, by Caller, sub Submission) (rec Record, created bool, err error) {
	sent := sentHash("job", sub.Body)
	rec, err = s.findRepeated(ctx, by, sub.Name, sent)
	if err != nil || rec != nil {
		return rec, false, err
	}
	return s.queue(ctx, sent, func() (*Planned, error) { return s.Planner().Job(ctx, by, sub) })
}

// queue plans a submission and stores its jobs. If a maker that it found has changed by
// then, it plans the submission again.
func (s *Jobs) queue(ctx context.Context, sent string, plan func() (*Planned, error)) (rec Record, created bool, err error) {
	for {
		planned, err := plan()
		if err != nil {
			return nil, false, err
		}
		rec, created, err = s.insert(ctx, sent, planned)
		if !errors.Is(err, errMakerChanged) {
			return rec, created, err
		}
	}
}

// hashVersion begins every hash, so that hashes of a future canonical form can be told
// apart.
const hashVersion = "molrun 1"

// sentHash identifies a request body by its content.
func sentHash(kind string, body *strictjson.Value) string {
	return digest.Parts([]byte(hashVersion), []byte(kind+" as sent"), body.AppendCanonical(make([]byte, 0, len(body.Raw))))
}

// findRepeated returns the record of the job that was created from the same body, or nil
// if there is none.
func (s *Jobs) findRepeated(ctx context.Context, by Caller, name, sent string) (rec Record, err error) {
	err = s.store.View(ctx, func(tx Tx) error {
		old, err := tx.JobNamed(by.Organization, name)
		if errors.Is(err, fault.NotFound) || err == nil && old.Private.Sent != sent {
			return nil
		}
		if err != nil {
			return err
		}
		rec, err = tx.JobJSON(old.ID)
		if err == nil {
			rec = s.WithLiveState(StoredJob{old.ID, rec})
		}
		return err
	})
	return rec, err
}

// insert queues a job with its subjobs unless the name is taken. sent is the hash of the
// request body.
func (s *Jobs) insert(ctx context.Context, sent string, planned *Planned) (rec Record, created bool, err error) {
	job := planned.job
	job.Private.Sent = sent
	first, err := job.Encoded()
	if err != nil {
		return nil, false, err
	}
	rows := make([]EncodedJob, len(planned.subjobs))
	for i, j := range planned.subjobs {
		if rows[i], err = j.encoded(false); err != nil { // the event of its batch announces a row
			return nil, false, err
		}
	}
	var made []EncodedJob
	for _, m := range planned.makers {
		if m.job == nil {
			continue
		}
		e, err := m.job.Encoded()
		if err != nil {
			return nil, false, err
		}
		made = append(made, e)
	}
	for _, a := range planned.Definitions {
		if _, err := a.Folder.Path(); err != nil { // the current state of the folder must be usable
			return nil, false, err
		}
	}
	var id JobID
	var changed []JobID
	err = s.store.Update(ctx, func(tx Tx) error {
		rec, created, changed = nil, false, nil
		old, err := tx.JobNamed(job.Organization, job.Name)
		switch {
		case err == nil:
			if err := old.checkRepeat(job); err != nil {
				return err
			}
			id = old.ID
			rec, err = tx.JobJSON(id)
			return err
		case !errors.Is(err, fault.NotFound):
			return err
		}
		if err := s.admitJobs(tx, job.Organization, job.Email, max(1, len(rows))+len(made)); err != nil {
			return err
		}
		if err := putMakers(tx, job, planned.makers, made); err != nil {
			return err
		}
		id, created = job.ID, true
		if err := putNew(tx, first, rows, planned.Definitions); err != nil {
			return err
		}
		if changed, err = s.propagateSome(tx); err != nil {
			return err
		}
		rec, err = tx.JobJSON(id)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	if created {
		s.changes.Notify(changed...) // includes jobs changed by the propagation of earlier pending statuses
		s.wakeRunner()
		return rec, true, nil
	}
	return s.WithLiveState(StoredJob{id, rec}), false, nil
}

// admitJobs rejects jobs that would exceed the quota of their user or organization.
// Results of admitted jobs are kept even if they exceed the quota; then no further job is
// admitted.
func (c *core) admitJobs(tx Tx, organization, user string, jobs int) error {
	for _, h := range quota.Holders(organization, user) {
		q := c.options.Quota.For(h)
		if q.Queued == 0 && q.Bytes == 0 || jobs == 0 {
			continue
		}
		coming, err := pendingRows(tx, h.Organization, h.User)
		if err != nil {
			return err
		}
		used, err := tx.Stored(h.Organization, h.User)
		if err == nil {
			err = q.Admit(h, jobs, used.Queued+coming, used.Bytes)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putNew stores a job followed by its rows. It reports a name that is already taken
// rather than a deleted input or dependency.
func putNew(tx Tx, first EncodedJob, rows []EncodedJob, definitions []*algorithm.File) error {
	for _, a := range definitions {
		switch _, err := tx.Definition(a.Digest); {
		case errors.Is(err, fault.NotFound):
			if err := tx.PutDefinition(a.Digest, a.Source); err != nil {
				return err
			}
		case err != nil:
			return err
		}
	}
	if err := tx.PutEncoded(first); err != nil { // its name has been checked already
		return err
	}
	for _, r := range rows {
		if err := rowNameIsFree(tx, r.Job); err != nil {
			return err
		}
		if err := tx.PutEncoded(r); err != nil {
			return err
		}
	}
	if err := referencesRemain(tx, first.Job); err != nil {
		return err
	}
	for _, r := range rows {
		gone, err := deletedReference(tx, r.Job.Private.References)
		if err != nil {
			return err
		}
		if gone >= 0 {
			return errInputDeleted(r.Job, gone)
		}
	}
	return dependenciesRemain(tx, first.Job, rows)
}

func rowNameIsFree(tx Tx, row *Job) error {
	_, err := tx.JobNamed(row.Organization, row.Name)
	switch {
	case err == nil:
		return fault.Errorf(fault.JobAlreadyExists, "job %q already exists, so the batch can't have a job of that name; nothing was created: choose another batchName or send jobNames", row.Name)
	case errors.Is(err, fault.NotFound):
		return nil
	}
	return err
}

// referencesRemain checks that no input was deleted since it was resolved.
func referencesRemain(tx Tx, j *Job) error {
	gone, err := deletedReference(tx, j.Private.References)
	if gone < 0 || err != nil {
		return err
	}
	return errInputDeleted(j, gone)
}

// errInputDeleted returns the error for an input that was deleted since it was resolved.
func errInputDeleted(j *Job, gone int) error {
	in := j.Inputs[gone]
	return fault.List(fault.Field{
		Loc: deletedAt(j, in.Setting), Type: "file",
		Msg: fmt.Sprintf("the file %q was just deleted; upload it again", in.Filename),
	})
}

// deletedReference returns the index of the first reference to a deleted file or job, or
// -1.
func deletedReference(tx Tx, references []Reference) (int, error) {
	for i, ref := range references {
		var err error
		if ref.Upload != "" {
			_, err = tx.Upload(ref.Upload)
		} else {
			_, err = tx.Job(ref.Job)
		}
		if errors.Is(err, fault.NotFound) {
			return i, nil
		}
		if err != nil {
			return -1, err
		}
	}
	return -1, nil
}

// deletedAt returns the location at which the submission referred to a deleted file.
func deletedAt(j *Job, setting string) []any {
	switch {
	case j.Source != "":
		return []any{"body"}
	case j.Private.Batch != "":
		return []any{"body", "settings", j.Private.Row, setting}
	}
	return []any{"body", "settings", setting}
}

// Validation is the result of Validate.
type Validation struct {
	Valid      bool
	Normalized json.RawMessage // settings as passed to the program; nil if invalid
	Detail     []fault.Field
}

// Validate checks a submission as Submit does, without queueing anything.
func (s *Jobs) Validate(ctx context.Context, by Caller, sub Submission) (*Validation, error) {
	planned, faults, err := planJob(ctx, s.core, by, sub)
	if err != nil {
		return nil, err
	}
	v := &Validation{Valid: len(faults) == 0, Detail: faults}
	if planned != nil && v.Valid {
		v.Normalized = planned.job.Private.Normalized
	}
	return v, nil
}
