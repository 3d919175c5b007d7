package kv

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app/base/fault"
	"molrun/app/base/sortid"
	"molrun/app/test/must"
)

// thing is the record type of the databases in these tests.
type thing struct{ Kind, Name string }

const (
	bucketThings = "things"
	bucketNotes  = "notes" // keyed by text
	indexKind    = "things.kind"
)

// things is indexed by kind.
var things = Table[thing]{
	Bucket: bucketThings,
	Read:   readThing,
	Derived: []Derived[thing]{
		Index[thing]{indexKind, func(id sortid.ID, v *thing) []Entry {
			return []Entry{{Key: Key{}.Text(v.Kind).ID(id)}}
		}},
	},
}

func readThing(tx *Tx, id sortid.ID) (*thing, error) {
	value := tx.Bucket(bucketThings).Get(id[:])
	if value == nil {
		return nil, fault.Errorf(fault.NotFound, "there is no thing %s", id)
	}
	v := new(thing)
	return v, json.Unmarshal(value, v)
}

// putThing stores thing n, a rock.
func putThing(tx *Tx, n int) error {
	id, v := testID(n), &thing{Kind: "rock", Name: string(make([]byte, 200))}
	old, err := readThing(tx, id)
	if errors.Is(err, fault.NotFound) {
		old, err = nil, nil
	}
	if err != nil {
		return err
	}
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return things.Put(tx, id, value, old, v)
}

// schemaWith returns the schema of these tests with the given migrations.
func schemaWith(steps ...Migration) *Schema {
	return &Schema{
		Buckets:    []string{bucketThings, bucketNotes},
		Tables:     []AnyTable{&things},
		Migrations: steps,
		Check:      func(context.Context, *Tx, *ProblemList) error { return nil },
		Repair:     func(context.Context, *Tx) error { return nil },
	}
}

// testID returns the n-th ID. IDs ascend with n.
func testID(n int) (id sortid.ID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// openAt opens a database that is closed when the test ends.
func openAt(t testing.TB, path string, o Options, steps ...Migration) *DB {
	t.Helper()
	db, err := Open(path, schemaWith(steps...), o)
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, db.Close()) })
	return db
}

// openNew opens a new database that is checked when the test ends.
func openNew(t testing.TB) *DB {
	t.Helper()
	db := openAt(t, newPath(t), Options{
		Fatal: func(err error) { t.Errorf("the database failed: %v", err) },
	})
	t.Cleanup(func() { check(t, db) })
	return db
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "jobs.db") }

func check(t testing.TB, db *DB) {
	t.Helper()
	must.OK(t, db.Check(context.Background()))
}

func update(t testing.TB, db *DB, fn func(*Tx) error) {
	t.Helper()
	must.OK(t, db.Update(t.Context(), fn))
}

func view(t testing.TB, db *DB, fn func(*Tx) error) {
	t.Helper()
	must.OK(t, db.View(t.Context(), fn))
}

func put(t testing.TB, db *DB, numbers ...int) {
	t.Helper()
	update(t, db, func(tx *Tx) error {
		for _, n := range numbers {
			if err := putThing(tx, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// upTo returns the numbers below n.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// edit changes a closed database without using this package.
func edit(t *testing.T, path string, change func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	must.OK(t, err)
	must.OK(t, errors.Join(db.Update(change), db.Close()))
}

func overwrite(path string, offset int64, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, offset)
	return errors.Join(err, f.Close())
}

// zeroRoot overwrites the root page of a bucket in an open database.
func zeroRoot(t *testing.T, db *DB, bucket string) {
	t.Helper()
	var root int64
	must.OK(t, db.file.View(func(tx *bolt.Tx) error {
		root = int64(tx.Bucket([]byte(bucket)).Root())
		return nil
	}))
	must.OK(t, overwrite(db.Path(), root*4096, make([]byte, 4096)))
}
