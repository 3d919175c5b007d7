package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"molrun/app/base/sortid"
)

// Checksums stores the CRC-32C of each stored record, by ID. It detects damage that no
// index reveals: a flipped bit within a value, or the loss of a record together with all
// its index entries.
//
// Unlike an index, it cannot be rebuilt by a repair.
type Checksums[T any] struct {
	Bucket string
	Parts  []string // buckets that hold the parts of a record, starting with the table's own
}

// Name returns the name of the bucket.
func (c Checksums[T]) Name() string { return c.Bucket }

// Apply stores the checksum of a record. It must run after all parts are stored.
func (c Checksums[T]) Apply(t *Tx, id sortid.ID, _, now *T) error {
	if now == nil {
		return t.Delete(c.Bucket, id[:])
	}
	return t.Replace(c.Bucket, id[:], c.sum(t, id[:]))
}

// polynomial is Castagnoli's, which CPUs compute in hardware.
var polynomial = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of a record with these parts.
func Checksum(parts ...[]byte) (crc uint32) {
	for _, part := range parts {
		crc = crc32.Update(crc, polynomial, part)
	}
	return crc
}

func (c Checksums[T]) sum(t *Tx, id []byte) []byte {
	parts := make([][]byte, len(c.Parts))
	for i, part := range c.Parts {
		parts[i] = t.Bucket(part).Get(id)
	}
	return binary.BigEndian.AppendUint32(nil, Checksum(parts...))
}

// Check compares the records, even undecodable ones, with their checksums.
func (c Checksums[T]) Check(t *Tx, found *ProblemList) (record func(sortid.ID, *T), end func(context.Context) error) {
	return func(sortid.ID, *T) {}, func(ctx context.Context) error {
		sums := t.Beside(c.Bucket)
		var further []*Lockstep
		for _, part := range c.Parts[1:] {
			further = append(further, t.Beside(part))
		}
		for id, value := range t.Ascend(c.Parts[0], nil) {
			crc := Checksum(value)
			for _, part := range further {
				crc = crc32.Update(crc, polynomial, part.At(id))
			}
			switch stored := sums.At(id); {
			case ctx.Err() != nil:
				return ctx.Err()
			case stored == nil:
				found.AddDerivablef("%s lacks %s", c.Bucket, textOf(id))
			case !bytes.Equal(stored, binary.BigEndian.AppendUint32(nil, crc)):
				found.Addf("%s: checksum mismatch in %s", c.Parts[0], textOf(id))
			}
		}
		for _, id := range c.orphans(t) {
			found.AddDerivablef("%s: record %s is missing; only its checksum remains", c.Parts[0], textOf(id))
		}
		return nil
	}
}

// orphans returns the checksums without a record.
func (c Checksums[T]) orphans(t *Tx) (ids []Key) {
	records := t.Beside(c.Parts[0])
	for id := range t.Ascend(c.Bucket, nil) {
		if records.At(id) == nil {
			ids = append(ids, bytes.Clone(id))
		}
	}
	return ids
}

// Repair adds missing checksums and removes those without a record. It changes no others:
// that would hide damaged records.
func (c Checksums[T]) Repair(t *Tx) error {
	for _, id := range c.orphans(t) {
		if err := t.Delete(c.Bucket, id); err != nil {
			return err
		}
	}
	for id := range t.Ascend(c.Parts[0], nil) {
		if t.Bucket(c.Bucket).Get(id) != nil {
			continue
		}
		if err := t.Put(c.Bucket, bytes.Clone(id), c.sum(t, id)); err != nil {
			return err
		}
	}
	return nil
}

// textOf returns an ID as text, or the bytes of a key that is not an ID in hexadecimal.
func textOf(k Key) string {
	if len(k) != sortid.Size {
		return fmt.Sprintf("%x", []byte(k))
	}
	return sortid.ID(k).String()
}
