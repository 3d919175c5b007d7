package storage

import (
	"context"
	"encoding/binary"

	"molrun/app/base/sortid"
	"molrun/storage/kv"
)

// count is a bucket of record counts by key.
type count[T any] struct {
	bucket string
	of     func(v *T) kv.Key
}

// Name returns the name of the bucket.
func (c count[T]) Name() string { return c.bucket }

// Apply updates the counts for a changed record.
func (c count[T]) Apply(t *kv.Tx, _ sortid.ID, old, now *T) error {
	if old != nil {
		if err := c.add(t, c.of(old), -1); err != nil {
			return err
		}
	}
	if now != nil {
		return c.add(t, c.of(now), 1)
	}
	return nil
}

func (c count[T]) add(t *kv.Tx, k kv.Key, n int) error {
	n += countAt(t, c.bucket, k)
	if n == 0 {
		return t.Delete(c.bucket, k)
	}
	return t.Put(c.bucket, k, binary.AppendVarint(nil, int64(n)))
}

// countAt returns the count for a key, or 0 if it has none.
func countAt(t *kv.Tx, bucket string, k kv.Key) int {
	n, _ := binary.Varint(t.Bucket(bucket).Get(k))
	return int(n)
}

// Check recounts the records and reports differences.
func (c count[T]) Check(t *kv.Tx, found *kv.ProblemList) (record func(sortid.ID, *T), end func(context.Context) error) {
	counted := map[string]int{}
	record = func(_ sortid.ID, v *T) { counted[string(c.of(v))]++ }
	end = func(context.Context) error {
		for k := range t.Ascend(c.bucket, nil) {
			if have := countAt(t, c.bucket, k); have != counted[string(k)] {
				found.AddDerivablef("the count %s for %s is %d; it should be %d", c.bucket, k.Owner(), have, counted[string(k)])
			}
			delete(counted, string(k))
		}
		for k, n := range counted {
			found.AddDerivablef("the count %s for %s is missing; it should be %d", c.bucket, kv.Key(k).Owner(), n)
		}
		return nil
	}
	return record, end
}
