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

// checkJobs checks what holds between records, beyond their indexes.
func checkJobs(ctx context.Context, t *kv.Tx, found *kv.Findings) error {
	checkAccounts(t, found)
	checkUsers(t, found)
	checkSessions(t, found)
	checkPrivate(t, found)
	checkNames(t, found)
	checkDependants(t, found)
	return ctx.Err()
}

// checkAccounts finds changed API keys and algorithm files.
func checkAccounts(t *kv.Tx, found *kv.Findings) {
	for id, value := range t.Ascend(bucketKeys, nil) {
		k, err := readKey(string(id), value)
		switch {
		case err != nil:
			found.Addf("%v", err)
		case k.ID != string(id):
			found.Addf("API key %s is stored under another ID", k.ID)
		case !keyIsSound(value):
			found.Addf("API key %s has another checksum than when it was stored", id)
		}
	}
	for name, text := range t.Ascend(bucketDefinitions, nil) {
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != string(name) {
			found.Addf("the algorithm file with digest %s has other bytes than were stored", name)
		}
	}
}

// checkUsers finds changed records of users.
func checkUsers(t *kv.Tx, found *kv.Findings) {
	for key, value := range t.Ascend(bucketUsers, nil) {
		u, err := readUser(fmt.Sprintf("%q", key), value)
		switch {
		case err != nil:
			found.Addf("%v", err)
		case !bytes.Equal(key, userKey(u.Organization, u.Email)):
			found.Addf("user %s is stored under another name", u.Email)
		case !keyIsSound(value):
			found.Addf("user %s has another checksum than when it was stored", u.Email)
		}
	}
}

// checkSessions finds changed records of sessions.
func checkSessions(t *kv.Tx, found *kv.Findings) {
	for key, value := range t.Ascend(bucketSessions, nil) {
		s, err := readSession(value)
		switch {
		case err != nil:
			found.Addf("%v", err)
		case !bytes.Equal(key, sessionKey(s.Holder, s.Hash)):
			found.Addf("a session of %s is stored under another name", s.Holder)
		case !keyIsSound(value):
			found.Addf("a session of %s has another checksum than when it was stored", s.Holder)
		}
	}
}

// checkPrivate finds private parts without a job. A job without a private part
// can't be read, which the table's check reports.
func checkPrivate(t *kv.Tx, found *kv.Findings) {
	jobs := t.Beside(bucketJobs)
	for id := range t.Ascend(bucketJobsPrivate, nil) {
		if jobs.At(id) == nil {
			found.Addf("%s: %x belongs to no job", bucketJobsPrivate, []byte(id))
		}
	}
}

// checkNames finds two jobs of one name.
func checkNames(t *kv.Tx, found *kv.Findings) {
	var last kv.Key
	for k := range t.Ascend(indexJobsName, nil) {
		id, err := k.LastID()
		if err != nil {
			found.Addf("%s: %v", indexJobsName, err)
			continue
		}
		name := k[:len(k)-sortid.Size]
		if bytes.Equal(name, last) {
			found.Addf("job %s has another's name", id)
		}
		last = name
	}
}

// batch is a batch with the counts of its rows.
type batch struct {
	parent *app.Job
	row    *app.Job // any one: they share organization and user
	types  bool     // the rows have several types
	counts app.Counts
}

// batches are those that there are, by their IDs.
type batches map[app.JobID]*batch

func (b batches) of(id app.JobID) *batch {
	if b[id] == nil {
		b[id] = new(batch)
	}
	return b[id]
}

// count counts a job as a row of its batch, and notes what batches there are.
func (b batches) count(j *app.Job, found *kv.Findings) {
	if j.IsBatch() {
		b.of(j.ID).parent = j
	}
	if j.Private.Batch != "" {
		b.of(j.Private.Batch).countRow(j, found)
	}
}

// checkRecords reports impossible states, and batches that count their rows wrong.
func checkRecords(found *kv.Findings) (record func(sortid.ID, *app.Job), end func()) {
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

// checkState finds a job that no runner would start or watch.
func checkState(id sortid.ID, j *app.Job, found *kv.Findings) {
	if idOf(j.ID) != id {
		found.Addf("job %s is stored under another ID", j.ID)
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

func (b *batch) countRow(j *app.Job, found *kv.Findings) {
	*b.counts.Of(j.Status)++
	if b.row == nil {
		b.row = j
	}
	if !sameOrigin(b.row, j) {
		found.Addf("subjob %s differs from %s in organization or user", j.ID, b.row.ID)
	}
	b.types = b.types || j.Type != b.row.Type
}

func (b *batch) checkRow(id app.JobID, found *kv.Findings) {
	switch {
	case b.parent == nil:
		found.Addf("subjob %s belongs to no batch", b.row.ID)
	case *b.parent.Counts != b.counts:
		found.Derivef("batch %s counts %s, its subjobs are %s", id, countsText(*b.parent.Counts), countsText(b.counts))
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

// checkDependants finds jobs that would wait forever, because the status of another job is
// never propagated to them.
func checkDependants(t *kv.Tx, found *kv.Findings) {
	for k := range t.Ascend(indexJobsDependant, nil) {
		if len(k) != 2*sortid.Size+1 {
			continue // reported by the table's check
		}
		how := app.Dependence(k[sortid.Size])
		d, err := readJob(t, sortid.ID(k[:sortid.Size]))
		switch {
		case errors.Is(err, fault.NotFound) && how != app.FailedWith:
			found.Addf("a job waits for job %s, which does not exist", sortid.ID(k[:sortid.Size]))
		case err == nil && !d.Private.Unpropagated && slices.Contains(d.AffectedDependants(), how):
			found.Derivef("job %s is %s, and a job that depends on it is not told", d.ID, d.Status)
		}
	}
}

// repairDependants has the service propagate the status of every job to its dependants.
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

// repairJobs stores the right counts of batches, and which statuses are still to be propagated.
func repairJobs(ctx context.Context, t *kv.Tx) error {
	return errors.Join(repairBatches(ctx, t), repairDependants(t))
}

// repairBatches stores the right counts of batches.
func repairBatches(ctx context.Context, t *kv.Tx) error {
	all := batches{}
	count := func(_ sortid.ID, j *app.Job, err error) bool {
		if err == nil { // the check reports it
			all.count(j, new(kv.Findings))
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
