package kv

import (
	"fmt"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"
)

const (
	// metaBuilt prefixes the meta key of each derived bucket that is completely built.
	metaBuilt = "index "

	// buildRecords is the number of records read per build transaction.
	buildRecords = 500
)

// prepareDerived builds the missing derived buckets. It drops those that are no longer in
// the schema, because an older version that uses them would consider them complete.
func prepareDerived(db *bolt.DB, s *Schema, announce func(string)) error {
	stale, missing, err := compareDerived(db, s)
	if err != nil {
		return err
	}
	if len(stale)+len(missing) == 0 {
		return nil
	}
	if len(missing) > 0 {
		announce("building database indexes: " + strings.Join(missing, ", "))
	}
	return rebuild(db, s, missing, stale)
}

// rebuild drops derived buckets and builds the missing ones from their records.
func rebuild(db *bolt.DB, s *Schema, missing, stale []string) error {
	err := db.Update(func(tx *bolt.Tx) error {
		for _, name := range slices.Concat(stale, missing) {
			if err := dropDerived(tx, name); err != nil {
				return err
			}
		}
		return createBuckets(tx, s)
	})
	if err != nil {
		return err
	}
	for _, table := range s.Tables {
		for _, name := range table.derivedNames() {
			if !slices.Contains(missing, name) {
				continue
			}
			if err := buildDerived(db, s, table, name); err != nil {
				return fmt.Errorf("build index %s: %w", name, err)
			}
		}
	}
	return nil
}

// compareDerived returns the derived buckets that are built but not in the schema, and
// those that are in the schema but incomplete.
func compareDerived(db *bolt.DB, s *Schema) (stale, missing []string, err error) {
	err = db.View(func(tx *bolt.Tx) error {
		built := map[string]bool{}
		meta := tx.Bucket([]byte(Meta)).Cursor()
		for k, _ := meta.Seek([]byte(metaBuilt)); k != nil; k, _ = meta.Next() {
			if name, ok := strings.CutPrefix(string(k), metaBuilt); ok {
				built[name] = true
			}
		}
		for _, name := range s.derived() {
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

func dropDerived(tx *bolt.Tx, name string) error {
	if err := tx.Bucket([]byte(Meta)).Delete([]byte(metaBuilt + name)); err != nil {
		return err
	}
	if tx.Bucket([]byte(name)) == nil {
		return nil
	}
	return tx.DeleteBucket([]byte(name))
}

// buildDerived fills an empty bucket, in transactions small enough for memory. The last
// one marks the bucket as built.
func buildDerived(db *bolt.DB, s *Schema, table AnyTable, name string) error {
	var from []byte
	for done := false; !done; {
		err := db.Update(func(b *bolt.Tx) (err error) {
			from, err = table.build(&Tx{bolt: b, schema: s}, name, from, buildRecords)
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

// isBuilt reports whether a derived bucket has been completely built.
func isBuilt(tx *bolt.Tx, name string) bool {
	return tx.Bucket([]byte(Meta)).Get([]byte(metaBuilt+name)) != nil
}

func markBuilt(tx *bolt.Tx, name string) error {
	return tx.Bucket([]byte(Meta)).Put([]byte(metaBuilt+name), []byte("built"))
}
