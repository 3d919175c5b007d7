package kv

import (
	"context"
	"runtime"
	"sync"

	"molrun/app/base/sortid"
)

// scanned is a group of records that a separate goroutine decodes. Their bytes are copied
// first, so that damage to the file is encountered by the goroutine that recovers from
// it.
type scanned[T any] struct {
	ids    []sortid.ID
	bytes  []byte
	ends   []int // end of each part in bytes; -1 if it is missing
	values []*T
	errs   []error
	done   sync.WaitGroup
}

const (
	scannedRecords = 256
	scannedBytes   = 1 << 20
)

// Scan calls visit for each record in ID order, with nil and an error for each one that
// cannot be decoded, until visit returns false. It passes keys that are not IDs to bad.
// If the table has Decode, records are decoded in parallel.
func (table *Table[T]) Scan(ctx context.Context, t *Tx, bad func(k Key), visit func(id sortid.ID, v *T, err error) bool) error {
	var ahead []*scanned[T] // oldest first
	defer func() {
		for _, s := range ahead {
			s.done.Wait()
		}
	}()
	next := new(scanned[T])
	oldest := func() bool {
		s := ahead[0]
		ahead = ahead[1:]
		s.done.Wait()
		for i, id := range s.ids {
			if !visit(id, s.values[i], s.errs[i]) {
				return false
			}
		}
		return true
	}
	send := func() bool {
		s := next
		next = new(scanned[T])
		s.done.Go(func() { s.decode(table) })
		ahead = append(ahead, s)
		return len(ahead) <= runtime.GOMAXPROCS(0) || oldest()
	}
	parts := make([]*Lockstep, len(table.Parts))
	for i, part := range table.Parts {
		parts[i] = t.Beside(part)
	}
	for k, value := range t.Ascend(table.Bucket, nil) {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, err := k.LastID()
		if err != nil || len(k) != sortid.Size {
			bad(k)
			continue
		}
		if table.Decode == nil {
			if v, err := table.Read(t, id); !visit(id, v, err) {
				return nil
			}
			continue
		}
		next.addRecord(id, value, parts)
		if (len(next.ids) == scannedRecords || len(next.bytes) > scannedBytes) && !send() {
			return nil
		}
	}
	if len(next.ids) > 0 && !send() {
		return nil
	}
	for len(ahead) > 0 {
		if !oldest() {
			return nil
		}
	}
	return nil
}

// addRecord copies a record and its other parts.
func (s *scanned[T]) addRecord(id sortid.ID, value []byte, parts []*Lockstep) {
	s.ids = append(s.ids, id)
	s.bytes = append(s.bytes, value...)
	s.ends = append(s.ends, len(s.bytes))
	for _, part := range parts {
		value := part.At(id[:])
		if value == nil {
			s.ends = append(s.ends, -1)
			continue
		}
		s.bytes = append(s.bytes, value...)
		s.ends = append(s.ends, len(s.bytes))
	}
}

func (s *scanned[T]) decode(table *Table[T]) {
	s.values, s.errs = make([]*T, len(s.ids)), make([]error, len(s.ids))
	parts := make([][]byte, 1+len(table.Parts))
	from, at := 0, 0
	for i, id := range s.ids {
		for k := range parts {
			parts[k] = nil
			if end := s.ends[at]; end >= 0 {
				parts[k] = s.bytes[from:end:end]
				from = end
			}
			at++
		}
		s.values[i], s.errs[i] = table.Decode(id, parts)
	}
}
