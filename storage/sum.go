package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"molrun/app"
)

// sum declares what the records of a table add up to, by key. Like an index it
// follows every change of a record within the same transaction, Open builds
// one that is missing, and Check counts again.
type sum[T any] struct {
	bucket string
	share  func(v *T) (key, app.Usage) // what a record adds; a nil key is nothing
}

func (s *sum[T]) name() string { return s.bucket }

func (s *sum[T]) of(v *T) (key, app.Usage) {
	if v == nil {
		return nil, app.Usage{}
	}
	return s.share(v)
}

// follow adds what a record's change adds.
func (s *sum[T]) follow(t *tx, _ app.IDBytes, old, now *T) error {
	before, less := s.of(old)
	after, more := s.of(now)
	if bytes.Equal(before, after) {
		return s.add(t, after, more.Minus(less))
	}
	if err := s.add(t, before, app.Usage{}.Minus(less)); err != nil {
		return err
	}
	return s.add(t, after, more)
}

func (s *sum[T]) add(t *tx, k key, change app.Usage) error {
	if k == nil || change == (app.Usage{}) {
		return nil
	}
	have, err := t.sumAt(s.bucket, k)
	if err != nil {
		return err
	}
	if total := have.Plus(change); total != (app.Usage{}) {
		return t.put(s.bucket, k, appendUsage(nil, total))
	}
	return t.delete(s.bucket, k)
}

// check compares the sums with those that were counted.
func (s *sum[T]) check(ctx context.Context, t *tx, counted map[string]app.Usage, found *problems) error {
	for k, value := range t.ascend(s.bucket, nil) {
		if err := ctx.Err(); err != nil {
			return err
		}
		have, err := cutUsage(value)
		want := counted[string(k)]
		delete(counted, string(k))
		if err != nil || have != want {
			found.derivef("%s says %+v of %q, its records add up to %+v", s.bucket, have, k, want)
		}
	}
	for k, want := range counted {
		if want != (app.Usage{}) {
			found.derivef("%s says nothing of %q, its records add up to %+v", s.bucket, k, want)
		}
	}
	return nil
}

// sumAt gives the sum under a key, zero where there is none.
func (t *tx) sumAt(bucket string, k key) (app.Usage, error) {
	value := t.bucket(bucket).Get(k)
	if value == nil {
		return app.Usage{}, nil
	}
	u, err := cutUsage(value)
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

func cutUsage(b []byte) (app.Usage, error) {
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
