package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/storage/kv"
)

// checkJobs checks the invariants between records that indexes do not cover.
func checkJobs(ctx context.Context, t *kv.Tx, found *kv.ProblemList) error {
	checkAccounts(t, found)
	checkUsers(t, found)
	checkSessions(t, found)
	checkPrivate(t, found)
	checkNames(t, found)
	checkDependants(t, found)
	return ctx.Err()
}

// checkAccounts reports corrupted API keys and algorithm files.
func checkAccounts(t *kv.Tx, found *kv.ProblemList) {
	for id, value := range t.Ascend(bucketKeys, nil) {
		k, err := readKey(string(id), value)
		switch {
		case err != nil:
			found.Addf("%v", err)
		case k.ID != string(id):
			found.Addf("API key %s is stored under a different ID", k.ID)
		case !keyIsSound(value):
			found.Addf("checksum mismatch in API key %s", id)
		}
	}
	for name, text := range t.Ascend(bucketDefinitions, nil) {
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != string(name) {
			found.Addf("the algorithm file with digest %s has changed content", name)
		}
	}
}

// checkUsers reports corrupted user records.
func checkUsers(t *kv.Tx, found *kv.ProblemList) {
	for key, value := range t.Ascend(bucketUsers, nil) {
		u, err := readUser(fmt.Sprintf("%q", key), value)
		switch {
		case err != nil:
			found.Addf("%v", err)
		case !bytes.Equal(key, userKey(u.Organization, u.Email)):
			found.Addf("user %s is stored under a different key", u.Email)
		case !keyIsSound(value):
			found.Addf("checksum mismatch in the record of user %s", u.Email)
		}
	}
}

// checkSessions reports corrupted session records.
func checkSessions(t *kv.Tx, found *kv.ProblemList) {
	for key, value := range t.Ascend(bucketSessions, nil) {
		s, err := readSession(value)
		switch {
		case err != nil:
			found.Addf("%v", err)
		case !bytes.Equal(key, sessionKey(s.Holder, s.Hash)):
			found.Addf("a session of %s is stored under a different key", s.Holder)
		case !keyIsSound(value):
			found.Addf("checksum mismatch in a session of %s", s.Holder)
		}
	}
}

// checkPrivate reports private parts without a job. A job without a private part is
// unreadable, which the table's check reports.
func checkPrivate(t *kv.Tx, found *kv.ProblemList) {
	jobs := t.Beside(bucketJobs)
	for id := range t.Ascend(bucketJobsPrivate, nil) {
		if jobs.At(id) == nil {
			found.Addf("%s: no job for %x", bucketJobsPrivate, []byte(id))
		}
	}
}

// checkNames reports jobs that share a name.
func checkNames(t *kv.Tx, found *kv.ProblemList) {
	var last kv.Key
	for k := range t.Ascend(indexJobsName, nil) {
		id, err := k.LastID()
		if err != nil {
			found.Addf("%s: %v", indexJobsName, err)
			continue
		}
		name := k[:len(k)-sortid.Size]
		if bytes.Equal(name, last) {
			found.Addf("job %s has the same name as another job", id)
		}
		last = name
	}
}

// batch is a batch with the counts of its rows.
type batch struct {
	parent *app.Job
	row    *app.Job // any row, since all have the same organization and user
	types  bool     // the rows have more than one type
	counts app.Counts
}

// batches maps IDs to batches.
type batches map[app.JobID]*batch

func (b batches) of(id app.JobID) *batch {
	if b[id] == nil {
		b[id] = new(batch)
	}
	return b[id]
}

// count adds a job to the counts of its batch, and registers the job if it is a batch.
func (b batches) count(j *app.Job, found *kv.ProblemList) {
	if j.IsBatch() {
		b.of(j.ID).parent = j
	}
	if j.Private.Batch != "" {
		b.of(j.Private.Batch).countRow(j, found)
	}
}

// checkRecords reports impossible states and batches with wrong row counts.
func checkRecords(found *kv.ProblemList) (record func(sortid.ID, *app.Job), end func()) {
	all := batches{}
	record = func(id sortid.ID, j *app.Job) {
		checkState(id, j, found)
		all.count(j, found)
	}
	end = func() {
		for id, batch := range all {
			batch.checkRow(id, found)
		}
	}
	return record, end
}

// checkState reports a job in an impossible state, which no runner would start or watch.
func checkState(id sortid.ID, j *app.Job, found *kv.ProblemList) {
	if idOf(j.ID) != id {
		found.Addf("job %s is stored under a different ID", j.ID)
	}
	switch {
	case !j.Status.Valid():
		found.Addf("job %s has status %q", j.ID, j.Status)
	case j.Status == app.Running && !j.IsBatch() && !j.Private.Claimed:
		found.Addf("job %s is running but not claimed", j.ID)
	case j.Status.Finished() && j.Private.Claimed:
		found.Addf("job %s is finished but still claimed", j.ID)
	}
}

func (b *batch) countRow(j *app.Job, found *kv.ProblemList) {
	*b.counts.Of(j.Status)++
	if b.row == nil {
		b.row = j
	}
	if !sameOrigin(b.row, j) {
		found.Addf("subjob %s differs from %s in organization or user", j.ID, b.row.ID)
	}
	b.types = b.types || j.Type != b.row.Type
}

func (b *batch) checkRow(id app.JobID, found *kv.ProblemList) {
	switch {
	case b.parent == nil:
		found.Addf("no batch for subjob %s", b.row.ID)
	case *b.parent.Counts != b.counts:
		found.AddDerivablef("batch %s counts %s, its subjobs are %s", id, countsText(*b.parent.Counts), countsText(b.counts))
	case b.row != nil && !sameOrigin(b.parent, b.row):
		found.Addf("subjob %s differs from its batch in organization or user", b.row.ID)
	case b.parent.Type != "" && b.row != nil && (b.types || b.parent.Type != b.row.Type):
		found.Addf("a subjob of batch %s differs from it in type", id)
	}
}

func countsText(c app.Counts) string {
	return fmt.Sprintf("%d queued, %d running, %d completed, %d failed", c.Queued, c.Running, c.Completed, c.Failed)
}

func sameOrigin(a, b *app.Job) bool {
	return a.Organization == b.Organization && a.Email == b.Email
}

// checkDependants reports jobs that would wait forever because the status of another job
// is never propagated to them.
func checkDependants(t *kv.Tx, found *kv.ProblemList) {
	for k := range t.Ascend(indexJobsDependant, nil) {
		if len(k) != 2*sortid.Size+1 {
			continue // the table's check reports this
		}
		how := app.Dependence(k[sortid.Size])
		d, err := readJob(t, sortid.ID(k[:sortid.Size]))
		switch {
		case errors.Is(err, fault.NotFound) && how != app.FailedWith:
			found.Addf("a job waits for job %s, which does not exist", sortid.ID(k[:sortid.Size]))
		case err == nil && !d.Private.Unpropagated && slices.Contains(d.AffectedDependants(), how):
			found.AddDerivablef("job %s is %s, but its status was not propagated to a dependent job", d.ID, d.Status)
		}
	}
}

// repairDependants has the service propagate the status of every job to its dependents.
func repairDependants(t *kv.Tx) error {
	for k := range t.Ascend(indexJobsDependant, nil) {
		d, err := present(readJob(t, sortid.ID(k[:sortid.Size])))
		if err != nil {
			return err
		}
		if d == nil || d.Private.Unpropagated || !slices.Contains(d.AffectedDependants(), app.Dependence(k[sortid.Size])) {
			continue
		}
		d.Private.Unpropagated = true
		if err := newTx(t).PutJob(d); err != nil {
			return err
		}
	}
	return nil
}

// repairJobs corrects the counts of batches and marks the statuses still to be
// propagated.
func repairJobs(ctx context.Context, t *kv.Tx) error {
	return errors.Join(repairBatches(ctx, t), repairDependants(t))
}

// repairBatches corrects the counts of batches.
func repairBatches(ctx context.Context, t *kv.Tx) error {
	all := batches{}
	count := func(_ sortid.ID, j *app.Job, err error) bool {
		if err == nil { // the check reports errors
			all.count(j, new(kv.ProblemList))
		}
		return true
	}
	if err := jobs.Scan(ctx, t, func(kv.Key) {}, count); err != nil {
		return err
	}
	for _, b := range all {
		if b.parent == nil || *b.parent.Counts == b.counts {
			continue
		}
		b.parent.Counts = &b.counts
		if err := newTx(t).PutJob(b.parent); err != nil {
			return err
		}
	}
	return nil
}
