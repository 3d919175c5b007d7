package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
)

// migration turns the database of one schema into that of the next. It may
// delete the bucket of an index: Open builds it again.
type migration func(*bolt.Tx) error

// migrations leads from schema 1 to the present one, a step each. Steps are
// only ever added. A new field of a record needs none.
var migrations = []migration{
	// 2: private parts of jobs may leave out settings that the record has. What
	// is there stays good, but older versions would not find them.
	func(*bolt.Tx) error { return nil },
}

// Keys of the bucket meta. Each index that is built whole has one too.
const (
	metaSchema = "schema"
	metaFloor  = "floor"
	metaIndex  = "index " // and its name
)

// buildRecords is how many records one transaction of index building reads.
const buildRecords = 500

// prepare brings the database to the present schema, with all buckets and
// indexes, and gives the floor of IDs.
func prepare(db *bolt.DB, steps []migration) (app.IDBytes, error) {
	schema, err := readSchema(db)
	if err != nil {
		return app.IDBytes{}, err
	}
	latest := 1 + len(steps)
	switch {
	case schema == 0:
		err = db.Update(func(tx *bolt.Tx) error { return create(tx, latest) })
	case schema > latest:
		err = refuseNewer(schema, latest)
	default:
		err = migrate(db, schema, steps)
	}
	if err == nil {
		err = ensureNames(db)
	}
	if err == nil {
		err = prepareIndexes(db)
	}
	if err != nil {
		return app.IDBytes{}, err
	}
	return readFloor(db)
}

func refuseNewer(schema, latest int) error {
	if schema <= latest {
		return nil
	}
	return fmt.Errorf("it was written by a newer version of this program (schema %d, this one knows %d); install that version again", schema, latest)
}

// readSchema gives 0 for a database with nothing in it.
func readSchema(db *bolt.DB) (schema int, err error) {
	err = db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket([]byte(bucketMeta))
		if meta == nil {
			if name, _ := tx.Cursor().First(); name != nil {
				return fmt.Errorf("the database is another program's: it has a bucket %q", name)
			}
			return nil
		}
		schema, err = strconv.Atoi(string(meta.Get([]byte(metaSchema))))
		if err != nil || schema < 1 {
			return fmt.Errorf("the database has no schema number; restore a backup")
		}
		return nil
	})
	return schema, err
}

func putSchema(tx *bolt.Tx, schema int) error {
	return tx.Bucket([]byte(bucketMeta)).Put([]byte(metaSchema), []byte(strconv.Itoa(schema)))
}

// create makes all buckets in one transaction, so that there is either an
// empty file or a whole store.
func create(tx *bolt.Tx, schema int) error {
	if err := createBuckets(tx); err != nil {
		return err
	}
	for _, name := range indexNames() {
		if err := markBuilt(tx, name); err != nil {
			return err
		}
	}
	if err := nameDatabase(tx); err != nil {
		return err
	}
	return putSchema(tx, schema)
}

// ensureNames names a database that was made before databases had names.
func ensureNames(db *bolt.DB) error {
	for _, name := range []string{metaID, metaLineage} {
		text, err := readMeta(db, name)
		if err != nil {
			return err
		}
		if text == "" {
			return db.Update(nameDatabase)
		}
	}
	return nil
}

func createBuckets(tx *bolt.Tx) error {
	for _, name := range bucketNames() {
		if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return fmt.Errorf("create bucket %s: %w", name, err)
		}
	}
	return nil
}

func bucketNames() []string {
	records := []string{
		bucketMeta, bucketJobs, bucketJobsPrivate, bucketUploads, bucketKeys, bucketDefinitions,
	}
	return append(records, indexNames()...)
}

func indexNames() []string {
	var names []string
	for _, tab := range tables {
		names = append(names, tab.indexNames()...)
	}
	return names
}

// migrate runs the steps that are missing, each in a transaction of its own
// after a copy of the database.
func migrate(db *bolt.DB, schema int, steps []migration) error {
	for ; schema <= len(steps); schema++ {
		next := schema + 1
		if err := snapshot(context.Background(), db, fmt.Sprintf("%s.before-%d", db.Path(), next)); err != nil {
			return fmt.Errorf("copy the database before it is migrated to schema %d: %w", next, err)
		}
		err := db.Update(func(tx *bolt.Tx) error {
			if err := steps[schema-1](tx); err != nil {
				return err
			}
			return putSchema(tx, next)
		})
		if err != nil {
			return fmt.Errorf("migrate to schema %d: %w", next, err)
		}
	}
	return nil
}

// prepareIndexes drops what is no index any more, so that an older version
// which knows it does not take it for complete, and builds what is missing.
func prepareIndexes(db *bolt.DB) error {
	stale, missing, err := compareIndexes(db)
	if err != nil {
		return err
	}
	if len(stale)+len(missing) == 0 {
		return nil
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range append(stale, missing...) {
			if err := dropIndex(tx, name); err != nil {
				return err
			}
		}
		return createBuckets(tx)
	})
	if err != nil {
		return err
	}
	for _, tab := range tables {
		for _, name := range tab.indexNames() {
			if !slices.Contains(missing, name) {
				continue
			}
			if err := buildIndex(db, tab, name); err != nil {
				return fmt.Errorf("build index %s: %w", name, err)
			}
		}
	}
	return nil
}

// compareIndexes tells which indexes are built but not declared, and which
// are declared but not built or without their bucket.
func compareIndexes(db *bolt.DB) (stale, missing []string, err error) {
	err = db.View(func(tx *bolt.Tx) error {
		built := map[string]bool{}
		meta := tx.Bucket([]byte(bucketMeta)).Cursor()
		for k, _ := meta.Seek([]byte(metaIndex)); k != nil; k, _ = meta.Next() {
			if name, ok := strings.CutPrefix(string(k), metaIndex); ok {
				built[name] = true
			}
		}
		for _, name := range indexNames() {
			if !built[name] || tx.Bucket([]byte(name)) == nil {
				missing = append(missing, name)
			}
			delete(built, name)
		}
		for name := range built {
			stale = append(stale, name)
		}
		return nil
	})
	return stale, missing, err
}

func dropIndex(tx *bolt.Tx, name string) error {
	if err := tx.Bucket([]byte(bucketMeta)).Delete([]byte(metaIndex + name)); err != nil {
		return err
	}
	if tx.Bucket([]byte(name)) == nil {
		return nil
	}
	return tx.DeleteBucket([]byte(name))
}

func markBuilt(tx *bolt.Tx, name string) error {
	return tx.Bucket([]byte(bucketMeta)).Put([]byte(metaIndex+name), []byte("built"))
}

// buildIndex fills an empty index from its records, so many in a transaction
// that memory stays bounded. It counts as built with the last one.
func buildIndex(db *bolt.DB, tab indexed, name string) error {
	var from []byte
	for done := false; !done; {
		err := db.Update(func(b *bolt.Tx) (err error) {
			from, err = tab.build(&tx{bolt: b}, name, from, buildRecords)
			if done = from == nil; err == nil && done {
				err = markBuilt(b, name)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func putFloor(tx *bolt.Tx, id app.IDBytes) error {
	if err := tx.Bucket([]byte(bucketMeta)).Put([]byte(metaFloor), id[:]); err != nil {
		return fmt.Errorf("put the floor of IDs: %w", err)
	}
	return nil
}

func readFloor(db *bolt.DB) (floor app.IDBytes, err error) {
	err = db.View(func(tx *bolt.Tx) error {
		value := tx.Bucket([]byte(bucketMeta)).Get([]byte(metaFloor))
		if value != nil && len(value) != app.IDSize {
			return errors.New("the floor of IDs is not an ID; restore a backup")
		}
		copy(floor[:], value)
		return nil
	})
	return floor, err
}
