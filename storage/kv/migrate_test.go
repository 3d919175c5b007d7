package kv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app/test/must"
)

// renameRocks is a migration such as a later version might need: it changes records,
// deletes the index that this invalidates, and creates a new bucket.
func renameRocks(tx *bolt.Tx) error {
	b := tx.Bucket([]byte(bucketThings))
	changed := map[string][]byte{}
	err := b.ForEach(func(k, v []byte) error {
		changed[string(k)] = bytes.Replace(v, []byte("rock"), []byte("stone"), 1)
		return nil
	})
	for k, v := range changed {
		err = errors.Join(err, b.Put([]byte(k), v))
	}
	_, created := tx.CreateBucketIfNotExists([]byte(bucketNotes))
	return errors.Join(err, created, tx.DeleteBucket([]byte(indexKind)))
}

// countKind counts the things of a kind in the index.
func countKind(t *testing.T, db *DB, kind string) (n int) {
	t.Helper()
	view(t, db, func(tx *Tx) error {
		for range tx.Ascend(indexKind, Key{}.Text(kind)) {
			n++
		}
		return nil
	})
	return n
}

// withThings returns the path of a closed database with n things.
func withThings(t *testing.T, n int) string {
	t.Helper()
	path := newPath(t)
	db := openAt(t, path, Options{})
	put(t, db, upTo(n)...)
	must.OK(t, db.Close())
	return path
}

func TestMigrationRunsOnceAndKeepsACopy(t *testing.T) {
	path := withThings(t, 3)
	edit(t, path, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(bucketNotes)) }) // the migration creates it
	runs := 0
	step := func(tx *bolt.Tx) error { runs++; return renameRocks(tx) }
	wantProblems(t, path, "", step)
	var said []string
	for range 2 {
		db := openAt(t, path, Options{Announce: func(text string) { said = append(said, text) }}, step)
		if rocks, stones := countKind(t, db, "rock"), countKind(t, db, "stone"); rocks != 0 || stones != 3 {
			t.Errorf("%d rocks and %d stones, want 0 and 3", rocks, stones)
		}
		check(t, db)
		must.OK(t, db.Close())
	}
	must.Equal(t, "runs of the step", runs, 1)
	if len(said) != 2 || !strings.Contains(said[0], "from schema 1 to 2") || !strings.Contains(said[1], indexKind) {
		t.Errorf("said %q, want the migration and the index that it dropped, once", said)
	}

	edit(t, path+".before-2", func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte(bucketNotes))
		return err
	})
	old := openAt(t, path+".before-2", Options{})
	must.Equal(t, "rocks of the copy", countKind(t, old, "rock"), 3)
	check(t, old)

	must.Fail(t, "a newer schema", must.Error2(Open(path, schemaWith(), Options{})), "newer version")
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	path := withThings(t, 3)
	first := func(*bolt.Tx) error { return nil }
	second := func(tx *bolt.Tx) error { return errors.Join(renameRocks(tx), errMine) }
	if _, err := Open(path, schemaWith(first, second), Options{}); !errors.Is(err, errMine) {
		t.Fatalf("error %v, want the step's", err)
	}
	db := openAt(t, path, Options{}, first) // with only the step that succeeded
	must.Equal(t, "rocks", countKind(t, db, "rock"), 3)
	check(t, db)
}

// wantProblems checks a closed database without changing it.
func wantProblems(t *testing.T, path, want string, steps ...Migration) {
	t.Helper()
	r, err := OpenReadOnly(path, schemaWith(steps...))
	must.OK(t, err)
	defer r.Close()
	report, err := r.Check(t.Context())
	must.OK(t, err)
	if found := fmt.Sprint(report.Err()); !strings.Contains(found, want) || want == "" && report.Count > 0 {
		t.Errorf("the check finds %q, want %q", found, want)
	}
}

func TestOpenBuildsMissingIndexes(t *testing.T) {
	for name, tt := range map[string]struct {
		found  string // reported by a check beforehand
		change func(*bolt.Tx) error
	}{
		"never built": {"", func(tx *bolt.Tx) error { return dropDerived(tx, indexKind) }},
		"bucket gone": {"the index things.kind is missing", func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(indexKind)) }},
		"build interrupted": {"things.kind is missing an entry", func(tx *bolt.Tx) error {
			err := tx.Bucket([]byte(Meta)).Delete([]byte(metaBuilt + indexKind))
			b := tx.Bucket([]byte(indexKind))
			for range 100 {
				k, _ := b.Cursor().First()
				err = errors.Join(err, b.Delete(k))
			}
			return errors.Join(err, b.Put([]byte("stray"), nil))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			const n = buildRecords + 10 // more than one transaction
			path := withThings(t, n)
			edit(t, path, tt.change)
			wantProblems(t, path, tt.found)
			db := openAt(t, path, Options{})
			must.Equal(t, "things in the index", countKind(t, db, "rock"), n)
			check(t, db)
		})
	}
}

// A database without its records is damaged, even if an index of them has yet to be
// built.
func TestOpenRefusesADatabaseThatLacksRecords(t *testing.T) {
	for name, also := range map[string]func(*bolt.Tx) error{
		"alone":         func(*bolt.Tx) error { return nil },
		"with an index": func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(indexKind)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := withThings(t, 1)
			edit(t, path, func(tx *bolt.Tx) error { return errors.Join(tx.DeleteBucket([]byte(bucketThings)), also(tx)) })
			before, err := os.ReadFile(path)
			must.OK(t, err)
			_, err = Open(path, schemaWith(), Options{})
			must.Fail(t, "the error", err, "restore a backup: the records things are missing")
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file has changed (%v)", err)
			}
		})
	}
}

func TestOpenDropsUnknownIndexes(t *testing.T) {
	path := withThings(t, 0)
	edit(t, path, func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("things.colour"))
		return errors.Join(err, markBuilt(tx, "things.colour"))
	})
	must.OK(t, openAt(t, path, Options{}).Close())
	edit(t, path, func(tx *bolt.Tx) error {
		if tx.Bucket([]byte("things.colour")) != nil || tx.Bucket([]byte(Meta)).Get([]byte(metaBuilt+"things.colour")) != nil {
			t.Error("the index is still there, but nobody updates it")
		}
		return nil
	})
}

func TestDamagedMetaIsRefused(t *testing.T) {
	for name, want := range map[string]string{metaSchema: "schema", metaHighWaterMark: "high-water mark"} {
		path := withThings(t, 0)
		edit(t, path, func(tx *bolt.Tx) error { return tx.Bucket([]byte(Meta)).Put([]byte(name), []byte("x")) })
		if _, err := Open(path, schemaWith(), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want a refusal", name, err)
		}
	}
}

func TestOpenRemovesLeftovers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"jobs.db.snapshot.1.tmp", "jobs.db.compact.tmp"} { // left by killed processes
		must.OK(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	must.OK(t, openAt(t, filepath.Join(dir, "jobs.db"), Options{}).Close())
	entries, err := os.ReadDir(dir)
	must.OK(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	must.Equal(t, "the directory", names, []string{"jobs.db", "jobs.db.commits", "jobs.db.initialised"})
}
