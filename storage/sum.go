package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"molrun/app"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
	"molrun/storage/kv"
)

// sum is a bucket with sums over records, by key. Like an index, it is updated within the
// transaction that changes a record.
type sum[T any] struct {
	bucket string
	share  func(v *T) (kv.Key, app.Usage) // amount to add for a record and its key; a nil key means none
}

var _ kv.Derived[app.Job] = sum[app.Job]{}

// Name returns the name of the bucket.
func (s sum[T]) Name() string { return s.bucket }

// Apply subtracts the share of old and adds the share of now.
func (s sum[T]) Apply(t *kv.Tx, _ sortid.ID, old, now *T) error {
	var before, after kv.Key
	var less, more app.Usage
	if old != nil {
		before, less = s.share(old)
	}
	if now != nil {
		after, more = s.share(now)
	}
	if bytes.Equal(before, after) {
		return s.add(t, after, more.Minus(less))
	}
	if err := s.add(t, before, app.Usage{}.Minus(less)); err != nil {
		return err
	}
	return s.add(t, after, more)
}

func (s sum[T]) add(t *kv.Tx, k kv.Key, change app.Usage) error {
	if k == nil || change == (app.Usage{}) {
		return nil
	}
	have, err := sumAt(t, s.bucket, k)
	if err != nil {
		return err
	}
	if total := have.Plus(change); total != (app.Usage{}) {
		return t.Put(s.bucket, k, appendUsage(nil, total))
	}
	return t.Delete(s.bucket, k)
}

// Check recomputes the sums and reports differences.
func (s sum[T]) Check(t *kv.Tx, found *kv.ProblemList) (record func(sortid.ID, *T), end func(context.Context) error) {
	counted := map[string]app.Usage{}
	record = func(_ sortid.ID, v *T) {
		if k, share := s.share(v); k != nil {
			counted[string(k)] = counted[string(k)].Plus(share)
		}
	}
	end = func(ctx context.Context) error {
		for k, value := range t.Ascend(s.bucket, nil) {
			if err := ctx.Err(); err != nil {
				return err
			}
			have, err := readUsage(value)
			want := counted[string(k)]
			delete(counted, string(k))
			if err != nil || have != want {
				found.AddDerivablef("the sum %s of %s is %s, its records add up to %s", s.bucket, k.Owner(), usageText(have), usageText(want))
			}
		}
		for k, want := range counted {
			if want != (app.Usage{}) {
				found.AddDerivablef("the sum %s of %s is missing, its records add up to %s", s.bucket, kv.Key(k).Owner(), usageText(want))
			}
		}
		return nil
	}
	return record, end
}

func usageText(u app.Usage) string {
	return fmt.Sprintf("%s (%d queued), %s, %s", unit.Count(u.Jobs, "job"), u.Queued, unit.Count(u.Files, "file"), unit.Bytes(u.Bytes))
}

// sumAt returns the sum for a key, or zero if it has none.
func sumAt(t *kv.Tx, bucket string, k kv.Key) (app.Usage, error) {
	value := t.Bucket(bucket).Get(k)
	if value == nil {
		return app.Usage{}, nil
	}
	u, err := readUsage(value)
	if err != nil {
		return u, fmt.Errorf("read %s: %w", bucket, err)
	}
	return u, nil
}

func appendUsage(b []byte, u app.Usage) []byte {
	for _, n := range []int64{int64(u.Jobs), int64(u.Queued), int64(u.Files), u.Bytes} {
		b = binary.AppendVarint(b, n)
	}
	return b
}

var errSum = errors.New("a sum is not four numbers")

func readUsage(b []byte) (app.Usage, error) {
	var numbers [4]int64
	for i := range numbers {
		v, n := binary.Varint(b)
		if n <= 0 {
			return app.Usage{}, errSum
		}
		numbers[i], b = v, b[n:]
	}
	if len(b) > 0 {
		return app.Usage{}, errSum
	}
	return app.Usage{Jobs: int(numbers[0]), Queued: int(numbers[1]), Files: int(numbers[2]), Bytes: numbers[3]}, nil
}
