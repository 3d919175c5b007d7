package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	bolt "go.etcd.io/bbolt"

	"molrun/app/base/sortid"
	"molrun/storage/kv/boltfile"
)

const metaSchema = "schema"

// prepare brings the database to the current schema, with all buckets and indexes, and
// returns the high-water mark of IDs.
func prepare(db *bolt.DB, s *Schema, announce func(string)) (highWaterMark sortid.ID, err error) {
	version, err := readVersion(db)
	switch {
	case err != nil:
		return highWaterMark, err
	case version == 0:
		err = db.Update(func(tx *bolt.Tx) error { return create(tx, s) })
	case version > s.version():
		err = newerError(version, s)
	default:
		if err = migrate(db, version, s, announce); err == nil {
			err = expectRecords(db, s)
		}
	}
	if err == nil {
		err = prepareDerived(db, s, announce)
	}
	if err != nil {
		return highWaterMark, err
	}
	err = db.View(func(tx *bolt.Tx) error {
		highWaterMark, err = readHighWaterMark(tx)
		return err
	})
	return highWaterMark, err
}

// expectRecords rejects a database from which record buckets have disappeared. Open would
// otherwise treat it as complete.
func expectRecords(db *bolt.DB, s *Schema) error {
	return db.View(func(tx *bolt.Tx) error {
		var found ProblemList
		checkBuckets(&Tx{bolt: tx, schema: s}, &found)
		for _, p := range found.Problems {
			if !p.Derivable {
				return boltfile.Damaged(errors.New(p.Text))
			}
		}
		return nil
	})
}

// checkBuckets reports missing buckets, except those that a migration or Open has yet to
// create.
func checkBuckets(t *Tx, found *ProblemList) {
	derived := t.schema.derived()
	schema, err := storedSchema(t)
	for _, name := range t.schema.buckets() {
		switch {
		case t.Has(name):
		case err == nil && schema < t.schema.version():
		case slices.Contains(derived, name) && !isBuilt(t.bolt, name):
		case slices.Contains(derived, name):
			found.AddDerivablef("the index %s is missing", name)
		default:
			found.Addf("the records %s are missing", name)
		}
	}
}

func storedSchema(t *Tx) (int, error) {
	return strconv.Atoi(string(t.Bucket(Meta).Get([]byte(metaSchema))))
}

// expectVersion rejects a database that this version cannot read.
func expectVersion(db *bolt.DB, s *Schema) error {
	version, err := readVersion(db)
	switch {
	case err != nil:
		return err
	case version == 0:
		return boltfile.Damaged(errors.New("it has no records"))
	case version > s.version():
		return newerError(version, s)
	}
	return nil
}

func newerError(version int, s *Schema) error {
	return fmt.Errorf("it was written by a newer version of this program (schema %d, this one knows %d); install that version again", version, s.version())
}

// readVersion returns the schema number of a database, or 0 if it is empty.
func readVersion(db *bolt.DB) (version int, err error) {
	err = db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket([]byte(Meta))
		if meta == nil {
			if name, _ := tx.Cursor().First(); name != nil {
				return fmt.Errorf("the database belongs to another program: it has a bucket %q", name)
			}
			return nil
		}
		version, err = strconv.Atoi(string(meta.Get([]byte(metaSchema))))
		if err != nil || version < 1 {
			return fmt.Errorf("the database has no schema number; restore a backup")
		}
		return nil
	})
	return version, err
}

func putVersion(tx *bolt.Tx, version int) error {
	return tx.Bucket([]byte(Meta)).Put([]byte(metaSchema), []byte(strconv.Itoa(version)))
}

// create creates all buckets in one transaction, so that a crash leaves either an empty
// file or a complete database.
func create(tx *bolt.Tx, s *Schema) error {
	if err := createBuckets(tx, s); err != nil {
		return err
	}
	for _, name := range s.derived() {
		if err := markBuilt(tx, name); err != nil {
			return err
		}
	}
	if err := boltfile.Identify(tx); err != nil {
		return err
	}
	return putVersion(tx, s.version())
}

func createBuckets(tx *bolt.Tx, s *Schema) error {
	for _, name := range s.buckets() {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return fmt.Errorf("create bucket %s: %w", name, err)
		}
	}
	return nil
}

// migrate runs the missing steps, each in its own transaction after copying the database.
func migrate(db *bolt.DB, version int, s *Schema, announce func(string)) error {
	if version < s.version() {
		announce(fmt.Sprintf("migrating the database from schema %d to %d; this can take minutes, during which no requests are served", version, s.version()))
	}
	for ; version < s.version(); version++ {
		next := version + 1
		if err := boltfile.CopyTo(context.Background(), db, fmt.Sprintf("%s.before-%d", db.Path(), next)); err != nil {
			return fmt.Errorf("copy the database before the migration to schema %d: %w", next, err)
		}
		err := db.Update(func(tx *bolt.Tx) error {
			if err := s.Migrations[version-1](tx); err != nil {
				return err
			}
			return putVersion(tx, next)
		})
		if err != nil {
			return fmt.Errorf("migrate to schema %d: %w", next, err)
		}
	}
	return nil
}
