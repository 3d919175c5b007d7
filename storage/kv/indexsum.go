package kv

import (
	"context"
	"hash/maphash"

	"molrun/app/base/sortid"
)

// indexSum is the number and the sum of hashes of the entries that an index should have.
// An index with different entries has a different sum, except with a probability of
// 2^-64; since the seed is secret, this holds even if someone tampers with the database.
// The entries can thus be read sequentially instead of being looked up one by one.
type indexSum[T any] struct {
	index Index[T]
	total hashes
}

type hashes struct{ count, sum uint64 }

var hashSeed = maphash.MakeSeed()

func (h *hashes) add(key, value []byte) {
	var m maphash.Hash
	m.SetSeed(hashSeed)
	_ = m.WriteByte(byte(len(key))) // hash writes never fail
	_, _ = m.Write(key)
	_ = m.WriteByte(0)
	_, _ = m.Write(value)
	h.count++
	h.sum += m.Sum64()
}

// addRecord adds the entries of a record.
func (s *indexSum[T]) addRecord(id sortid.ID, v *T) {
	for _, e := range s.index.Entries(id, v) {
		s.total.add(e.Key, e.Value)
	}
}

// agrees reports whether the index has exactly these entries.
func (s *indexSum[T]) agrees(ctx context.Context, t *Tx) (bool, error) {
	var have hashes
	for k, value := range t.Ascend(s.index.Bucket, nil) {
		if have.count%1024 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		have.add(k, value)
	}
	return have == s.total, nil
}
