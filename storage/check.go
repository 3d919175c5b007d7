package storage

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"molrun/app"
)

// Check reads the whole database and reports whatever disagrees: pages,
// records and their indexes both ways, batches and their subjobs, the floor.
// Writers wait while it reads the pages.
func (s *Store) Check(ctx context.Context) error {
	var found problems
	if err := s.checkPages(ctx, &found); err != nil {
		return err
	}
	if found.count > 0 {
		return found.err() // no record can be looked for on damaged pages
	}
	err := s.View(ctx, func(view app.Tx) error {
		return checkRecords(ctx, view.(*tx), s.Floor(), &found)
	})
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	return found.err()
}

// checkRecords checks everything above the pages.
func checkRecords(ctx context.Context, t *tx, floor app.IDBytes, found *problems) error {
	for _, tab := range tables {
		if err := tab.check(ctx, t, found); err != nil {
			return err
		}
	}
	checkPrivate(t, found)
	checkNames(t, found)
	checkFloor(t, floor, found)
	return checkJobs(ctx, t, found)
}

// checkPages holds the write lock, since bbolt's list of free pages is not
// for reading while a writer changes it.
func (s *Store) checkPages(ctx context.Context, found *problems) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	b, err := s.db.Begin(true)
	if err != nil {
		return s.beginError(err)
	}
	for err := range b.Check() {
		found.addf("%v", err)
	}
	return b.Rollback()
}

// Problem is one thing that a check found.
type Problem struct {
	Text string `json:"text"`

	// Derivable problems follow from records that are sound: Repair puts them
	// right.
	Derivable bool `json:"derivable"`
}

// maxProblems bounds what is told in words; one damaged index is enough for
// a line of each record.
const maxProblems = 200

// problems are what a check found, the first few in words.
type problems struct {
	count     int
	derivable int
	first     []Problem
}

// addf notes what nothing else in the database can put right.
func (p *problems) addf(format string, args ...any) { p.add(false, format, args) }

// derivef notes what follows from records, and disagrees with them.
func (p *problems) derivef(format string, args ...any) { p.add(true, format, args) }

func (p *problems) add(derivable bool, format string, args []any) {
	p.count++
	if derivable {
		p.derivable++
	}
	if len(p.first) < maxProblems {
		p.first = append(p.first, Problem{fmt.Sprintf(format, args...), derivable})
	}
}

func (p *problems) err() error {
	if p.count == 0 {
		return nil
	}
	var lines []string
	for _, one := range p.first[:min(20, len(p.first))] {
		lines = append(lines, one.Text)
	}
	return fmt.Errorf("the database disagrees with itself in %d places; restore a backup:\n%s",
		p.count, strings.Join(lines, "\n"))
}

// checkPrivate finds private parts without a job; the table's check finds
// jobs without them.
func checkPrivate(t *tx, found *problems) {
	for id := range t.ascend(bucketJobsPrivate, nil) {
		if t.bucket(bucketJobs).Get(id) == nil {
			found.addf("%s: %x belongs to no job", bucketJobsPrivate, []byte(id))
		}
	}
}

// checkNames finds two jobs of one name.
func checkNames(t *tx, found *problems) {
	var last key
	for k := range t.ascend(indexJobsName, nil) {
		id, err := k.lastID()
		if err != nil {
			found.addf("%s: %v", indexJobsName, err)
			continue
		}
		name := k[:len(k)-app.IDSize]
		if bytes.Equal(name, last) {
			found.addf("job %s has another's name", id)
		}
		last = name
	}
}

// checkFloor finds records above the floor, whose IDs could be given again.
func checkFloor(t *tx, floor app.IDBytes, found *problems) {
	for _, bucket := range []string{bucketJobs, bucketUploads} {
		if last, _ := t.bucket(bucket).Cursor().Last(); string(last) > string(floor[:]) {
			found.derivef("%s has an ID above the floor %s", bucket, floor)
		}
	}
}

// batchSums is what the rows of a batch add up to, and what its record says.
type batchSums struct {
	parent *app.Job
	row    *app.Job // any one, for what all share
	counts app.Counts
}

func checkJobs(ctx context.Context, t *tx, found *problems) error {
	batches, err := sumBatches(ctx, t, found)
	for id, batch := range batches {
		batch.check(id, found)
	}
	return err
}

// sumBatches visits every job, notes those whose state makes no sense, and
// sums up the rows of each batch.
func sumBatches(ctx context.Context, t *tx, found *problems) (map[app.JobID]*batchSums, error) {
	batches := map[app.JobID]*batchSums{}
	sums := func(id app.JobID) *batchSums {
		if batches[id] == nil {
			batches[id] = new(batchSums)
		}
		return batches[id]
	}
	for id := range t.ascend(bucketJobs, nil) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		j, err := t.jobAt(id)
		if err != nil {
			continue // the table's check has told
		}
		checkJobState(id, j, found)
		if j.IsBatch() {
			sums(j.ID).parent = j
		}
		if j.Private.Batch != "" {
			sums(j.Private.Batch).add(j, found)
		}
	}
	return batches, nil
}

func (t *tx) jobAt(k key) (*app.Job, error) {
	id, err := k.lastID()
	if err != nil {
		return nil, err
	}
	return readJob(t, id)
}

// checkJobState finds a job that nobody would run or watch to its end.
func checkJobState(k key, j *app.Job, found *problems) {
	if id := idOf(j.ID); !bytes.Equal(k, id[:]) {
		found.addf("job %s is stored under another ID", j.ID)
	}
	switch {
	case !j.Status.Valid():
		found.addf("job %s has status %q", j.ID, j.Status)
	case j.Status == app.Running && !j.IsBatch() && !j.Private.Claimed:
		found.addf("job %s is running but not claimed", j.ID)
	case j.Status.Finished() && j.Private.Claimed:
		found.addf("job %s is finished but still claimed", j.ID)
	}
}

func (b *batchSums) add(j *app.Job, found *problems) {
	*b.counts.Of(j.Status)++
	if b.row == nil {
		b.row = j
	}
	if !kin(b.row, j) {
		found.addf("subjob %s differs from %s in organization, user or type", j.ID, b.row.ID)
	}
}

func (b *batchSums) check(id app.JobID, found *problems) {
	switch {
	case b.parent == nil:
		found.addf("subjob %s belongs to no batch", b.row.ID)
	case *b.parent.Counts != b.counts:
		found.derivef("batch %s counts %+v, its subjobs are %+v", id, *b.parent.Counts, b.counts)
	case b.row != nil && !kin(b.parent, b.row):
		found.addf("subjob %s differs from its batch in organization, user or type", b.row.ID)
	}
}

func kin(a, b *app.Job) bool {
	return a.Organization == b.Organization && a.Email == b.Email && a.Type == b.Type
}
