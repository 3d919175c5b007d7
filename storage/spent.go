package storage

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"molrun/app"
	"molrun/app/base/sortid"
	"molrun/app/job/quota"
	"molrun/storage/kv"
)

// Buckets of consumption. The key is organization, day, user and type.
const (
	spentByJobs    = "jobs.spent"
	spentByUploads = "uploads.spent"
)

// tally is a bucket of counters that only grow: a change of a record adds to them, and
// deleting it subtracts nothing. So a tally cannot be derived from the records, and a
// repair only raises it to their sum.
type tally[T any] struct {
	bucket, records string
	read            func(*kv.Tx, sortid.ID) (*T, error)
	of              func(v *T) quota.SpentShare
}

var _ kv.Derived[app.Job] = tally[app.Job]{}

// Name returns the name of the bucket.
func (y tally[T]) Name() string { return y.bucket }

// Apply adds the increase from old to now.
func (y tally[T]) Apply(t *kv.Tx, _ sortid.ID, old, now *T) error {
	if now == nil {
		return nil
	}
	after := y.of(now)
	if old != nil {
		after.Spent = after.Above(y.of(old).Spent)
	}
	return y.addSpent(t, after)
}

func (y tally[T]) addSpent(t *kv.Tx, s quota.SpentShare) error {
	if s.Spent == (quota.Spent{}) {
		return nil
	}
	k := make(kv.Key, 0, 128).Text(s.Organization).Time(s.Day).Text(s.Email).Text(s.Type)
	if value := t.Bucket(y.bucket).Get(k); value != nil {
		have, err := readCounters(value)
		if err != nil {
			return fmt.Errorf("read %s: %w", y.bucket, err)
		}
		s.Spent.Add(have)
	}
	return t.Put(y.bucket, k, appendCounters(nil, s.Spent))
}

// Check adds up the records of each user and type, over all days. The tally can be higher
// but not lower.
func (y tally[T]) Check(t *kv.Tx, found *kv.ProblemList) (record func(sortid.ID, *T), end func(context.Context) error) {
	proved := recordSums{}
	record = func(_ sortid.ID, v *T) { proved.add(y.of(v)) }
	end = func(ctx context.Context) error {
		missing, err := y.missing(ctx, t, proved)
		if err != nil {
			return err
		}
		for _, s := range missing {
			found.AddDerivablef("tally %s for user %q of %q, type %q, is missing %s", y.bucket, s.Email, s.Organization, s.Type, missingText(s.Spent))
		}
		return nil
	}
	return record, end
}

// missingText describes the nonzero counters.
func missingText(c quota.Spent) string {
	var parts []string
	for i, n := range c.Fields() {
		if *n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", *n, counterNames[i]))
		}
	}
	return strings.Join(parts, ", ")
}

// counterNames holds the names of the counters in the order of Fields.
var counterNames = [quota.SpentFields]string{
	"completed", "failed", "attempts", "ms of running", "ms of CPU", "ms of CPUs reserved", "ms of GPU", "bytes of results", "uploads", "bytes of uploads",
}

// Repair adds the missing amounts to the tally, on the day of the last record.
func (y tally[T]) Repair(t *kv.Tx) error {
	proved := recordSums{}
	for k := range t.Ascend(y.records, nil) {
		id, err := k.LastID()
		if err != nil {
			return err
		}
		v, err := y.read(t, id)
		if err != nil {
			return err
		}
		proved.add(y.of(v))
	}
	missing, err := y.missing(context.Background(), t, proved)
	for _, s := range missing {
		if err == nil {
			err = y.addSpent(t, s)
		}
	}
	return err
}

// missing returns the amounts by which the tally falls short of the records.
func (y tally[T]) missing(ctx context.Context, t *kv.Tx, proved recordSums) (missing []quota.SpentShare, err error) {
	counted := recordSums{}
	for k, value := range t.Ascend(y.bucket, nil) {
		s, err := readSpent(k, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", y.bucket, err)
		}
		counted.add(s)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	for who, s := range proved {
		have := quota.Spent{}
		if c := counted[who]; c != nil {
			have = c.Spent
		}
		less := *s
		if less.Spent = s.Above(have); less.Spent != (quota.Spent{}) {
			missing = append(missing, less)
		}
	}
	return missing, nil
}

// recordSums holds counters by organization, user and type, with the last day of each.
type recordSums map[[3]string]*quota.SpentShare

func (p recordSums) add(s quota.SpentShare) {
	if s.Spent == (quota.Spent{}) {
		return
	}
	who := [3]string{s.Organization, s.Email, s.Type}
	if p[who] == nil {
		p[who] = &quota.SpentShare{Organization: s.Organization, Email: s.Email, Type: s.Type, Day: s.Day}
	}
	p[who].Spent.Add(s.Spent)
	if p[who].Day.Before(s.Day) {
		p[who].Day = s.Day
	}
}

// spentByJob returns the consumption in a job's record. A batch itself consumes nothing.
func spentByJob(j *app.Job) quota.SpentShare {
	s := quota.SpentShare{Organization: j.Organization, Email: j.Email, Type: j.Type}
	if j.IsBatch() {
		return s
	}
	attempts := j.Private.Spent
	s.Attempts, s.RunMillis, s.CPUMillis = attempts.Ended, attempts.RunMillis, attempts.CPUMillis
	s.BookedMillis = attempts.RunMillis * int64(j.Private.Needs.CPUs)
	s.GPUMillis = attempts.RunMillis * int64(j.Private.Needs.GPUs)
	s.Day = dayOf(attempts.At)
	if !j.Status.Finished() {
		return s
	}
	s.Day = dayOf(j.CompletedAt)
	if j.Status == app.Failed {
		s.Failed = 1
		return s
	}
	s.Completed = 1
	if j.ResultBytes != nil {
		s.ResultBytes = *j.ResultBytes
	}
	return s
}

// spentByUpload counts an upload once it is complete.
func spentByUpload(u *app.Upload) quota.SpentShare {
	s := quota.SpentShare{Organization: u.Organization, Email: u.Email, Day: dayOf(u.CompletedAt)}
	if u.Completed() {
		s.Uploads, s.UploadBytes = 1, u.Size
	}
	return s
}

func readSpent(k kv.Key, value []byte) (s quota.SpentShare, err error) {
	if s.Organization, k, err = k.CutText(); err != nil {
		return s, err
	}
	if s.Day, k, err = k.CutTime(); err != nil {
		return s, err
	}
	if s.Email, k, err = k.CutText(); err != nil {
		return s, err
	}
	if s.Type, _, err = k.CutText(); err != nil {
		return s, err
	}
	s.Spent, err = readCounters(value)
	return s, err
}

func appendCounters(b []byte, c quota.Spent) []byte {
	for _, n := range c.Fields() {
		b = binary.AppendVarint(b, *n)
	}
	return b
}

func readCounters(b []byte) (c quota.Spent, err error) {
	for _, field := range c.Fields() {
		v, n := binary.Varint(b)
		if n <= 0 {
			return c, kv.ErrKey
		}
		*field, b = v, b[n:]
	}
	if len(b) > 0 {
		return c, kv.ErrKey
	}
	return c, nil
}
