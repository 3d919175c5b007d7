package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"molrun/app/base/sortid"
)

// Checksums keeps the CRC-32C of what is stored of each record, by ID. It finds
// what no index shows: a bit that has changed within a value, and a record that
// was lost with all its entries.
//
// Unlike an index it can't be rebuilt by a repair.
type Checksums[T any] struct {
	Bucket string
	Parts  []string // the buckets that have a record's parts, that of the table first
}

// Name returns the name of the bucket.
func (c Checksums[T]) Name() string { return c.Bucket }

// Follow stores the checksum of a record after all its parts.
func (c Checksums[T]) Follow(t *Tx, id sortid.ID, _, now *T) error {
	if now == nil {
		return t.Delete(c.Bucket, id[:])
	}
	return t.Replace(c.Bucket, id[:], c.sum(t, id[:]))
}

// polynomial is Castagnoli's, which CPUs compute.
var polynomial = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of a record made of these parts.
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

// Check compares the records with their checksums, also those that can't be read.
func (c Checksums[T]) Check(t *Tx, found *Findings) (record func(sortid.ID, *T), end func(context.Context) error) {
	return func(sortid.ID, *T) {}, func(ctx context.Context) error {
		sums := t.Beside(c.Bucket)
		var further []*Beside
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
				found.Derivef("%s lacks %s", c.Bucket, textOf(id))
			case !bytes.Equal(stored, binary.BigEndian.AppendUint32(nil, crc)):
				found.Addf("%s: %s has another checksum than when it was stored", c.Parts[0], textOf(id))
			}
		}
		for _, id := range c.orphans(t) {
			found.Derivef("%s: %s is lost; only its checksum is left", c.Parts[0], textOf(id))
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

// Repair adds the checksums that are missing and removes those without a record. It
// changes no other: a damaged record would look sound.
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

// textOf returns an ID as text, or the bytes of a key that is none.
func textOf(k Key) string {
	if len(k) != sortid.Size {
		return fmt.Sprintf("%x", []byte(k))
	}
	return sortid.ID(k).String()
}
