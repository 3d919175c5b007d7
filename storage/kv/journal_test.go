package kv

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app/base/events"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

const bucketJournal = "journal"

// openJournal opens a database with a journal of at most 10 entries and 100 bytes.
func openJournal(t *testing.T, path string) *DB {
	t.Helper()
	s := schemaWith()
	s.Journal = &Journal{Bucket: bucketJournal, Entries: 10, Bytes: 100}
	db, err := Open(path, s, Options{AnyFileSystem: true, Fatal: func(err error) { t.Errorf("fatal: %v", err) }})
	must.OK(t, err)
	t.Cleanup(func() {
		if err := db.Check(context.Background()); err != nil && !errors.Is(err, fault.Unavailable) {
			t.Errorf("check: %v", err)
		}
		must.OK(t, db.Close())
	})
	return db
}

// note adds notes to the journal of an owner. Each transaction also puts a thing.
func note(t *testing.T, db *DB, owner string, texts ...string) {
	t.Helper()
	for i, text := range texts {
		update(t, db, func(tx *Tx) error {
			tx.AddNote(Note{Owner: owner, Value: []byte(text)})
			return tx.Put(bucketNotes, []byte(owner), fmt.Append(nil, text, i))
		})
	}
}

// noted returns the notes after a position, or "unknown" if they have been dropped.
func noted(t *testing.T, db *DB, owner string, after events.ID) (texts []string, last events.ID) {
	t.Helper()
	view(t, db, func(tx *Tx) error {
		texts = nil
		all, known, err := tx.EntriesAfter(owner, after)
		if err != nil {
			return err
		}
		if !known {
			texts = []string{"unknown"}
			last, err = tx.LastEntry(owner)
			return err
		}
		for e, err := range all {
			must.OK(t, err)
			texts = append(texts, string(e.Value))
			last = e.ID
		}
		end, err := tx.LastEntry(owner)
		if len(texts) > 0 && end != last {
			t.Errorf("the last entry is %v, the walk ends at %v", end, last)
		}
		last = end
		return err
	})
	return texts, last
}

func wantNoted(t *testing.T, db *DB, owner string, after events.ID, want ...string) events.ID {
	t.Helper()
	got, last := noted(t, db, owner, after)
	must.Equal(t, fmt.Sprintf("%s behind %v", owner, after), got, want)
	return last
}

func TestJournalKeepsTheLastEntriesOfEachOwner(t *testing.T) {
	path := newPath(t)
	db := openJournal(t, path)
	var start events.ID
	wantNoted(t, db, "a", start)
	note(t, db, "a", "one")
	one := wantNoted(t, db, "a", start, "one")
	note(t, db, "aa", "other")
	note(t, db, "a", "two", "three")
	wantNoted(t, db, "a", one, "two", "three")
	wantNoted(t, db, "aa", start, "other")
	wantNoted(t, db, "a\x00", start)
	must.OK(t, db.Close())

	db = openJournal(t, path)
	note(t, db, "a", "4", "5", "6", "7", "8", "9", "10")
	ten := wantNoted(t, db, "a", start, "one", "two", "three", "4", "5", "6", "7", "8", "9", "10")
	note(t, db, "a", "11")
	wantNoted(t, db, "a", start, "unknown")
	wantNoted(t, db, "a", one, "unknown")
	wantNoted(t, db, "a", ten, "11")
	must.Equal(t, "number of the tenth entry", ten.Number, 10)

	long := strings.Repeat("x", 40)
	note(t, db, "a", long, long)
	wantNoted(t, db, "a", ten, "11", long, long)
	rest := strings.Repeat("z", 100-len("10")-len("11")-2*len(long)) // fills the limit to the last byte
	note(t, db, "a", rest)
	wantNoted(t, db, "a", ten, "11", long, long, rest)
	note(t, db, "a", strings.Repeat("y", 200))
	all, last := noted(t, db, "a", ten)
	if !slices.Equal(all, []string{"unknown"}) || last.Number != 15 {
		t.Errorf("behind more bytes than are kept: %q, %v", all, last)
	}
	wantNoted(t, db, "a", last)
	wantNoted(t, db, "aa", start, "other")
}

func TestPositionsOfAnotherJournalAreUnknown(t *testing.T) {
	path := newPath(t)
	db := openJournal(t, path)
	note(t, db, "a", "one")
	_, one := noted(t, db, "a", events.ID{})
	copied, err := db.Snapshot(t.Context())
	must.OK(t, err)
	note(t, db, "a", "two")
	_, two := noted(t, db, "a", one)

	restored := filepath.Join(t.TempDir(), "jobs.db")
	must.Write(t, restored, must.Read(t, copied))
	other := openJournal(t, restored)
	wantNoted(t, other, "a", one)
	wantNoted(t, other, "a", two, "unknown") // the position is ahead of the journal
	note(t, other, "a", "deux", "trois")
	wantNoted(t, other, "a", one, "deux", "trois")
	wantNoted(t, other, "a", two, "unknown") // the journal has a different entry 2
}

func TestNotesAreDeliveredInOrderAfterCommit(t *testing.T) {
	db := openJournal(t, newPath(t))
	var told []string
	db.OnNoted(func(all []events.Entry) { // runs in the writer's goroutine
		for _, e := range all {
			told = append(told, fmt.Sprint(e.ID.Number, e.Owner, string(e.Value), e.Attached))
		}
	})
	others := 0
	db.OnNoted(func(all []events.Entry) { others += len(all) })
	failed := errors.New("failed")
	must.OK(t, db.Update(t.Context(), func(tx *Tx) error {
		tx.AddNote(Note{Owner: "a", Value: []byte("x"), Replaces: "k", Attached: 1})
		tx.AddNote(Note{Owner: "b", Value: []byte("y"), Attached: 2})
		tx.AddNote(Note{Owner: "a", Value: []byte("z"), Replaces: "k", Attached: 3})
		tx.AddNote(Note{Owner: "a", Value: []byte("w"), Replaces: "other", Attached: 4})
		return tx.Put(bucketNotes, []byte("k"), []byte("v"))
	}))
	if err := db.Update(t.Context(), func(tx *Tx) error {
		tx.AddNote(Note{Owner: "a", Value: []byte("never")})
		must.OK(t, tx.Put(bucketNotes, []byte("k"), []byte("lost")))
		return failed
	}); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	note(t, db, "a", "last")
	want := []string{"1by2", "1az3", "2aw4", "3alast<nil>"}
	if !slices.Equal(told, want) || others != len(want) {
		t.Errorf("told %q, and %d to another listener; want %q", told, others, want)
	}
	wantNoted(t, db, "a", events.ID{}, "z", "w", "last")
}

// TestADamagedJournalIsEmptied changes an entry, which a check finds and a repair fixes
// by emptying the journal.
func TestADamagedJournalIsEmptied(t *testing.T) {
	path := newPath(t)
	db := openJournal(t, path)
	note(t, db, "a", "one", "two", "three")
	_, last := noted(t, db, "a", events.ID{})
	schema := db.schema
	must.OK(t, db.Close())
	edit(t, path, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(bucketJournal))
		k := journalKey("a", 2)
		v := slices.Clone(b.Get(k))
		v[len(v)-1] ^= 1
		return b.Put(k, v)
	})
	before, err := OpenReadOnly(path, schema)
	must.OK(t, err)
	found, err := before.Check(t.Context())
	must.OK(t, err)
	must.OK(t, before.Close())
	if found.Count != 1 || found.Derivable != 1 {
		t.Errorf("found %+v", found.ProblemList)
	}
	after, err := Repair(t.Context(), path, schema, Options{AnyFileSystem: true})
	must.OK(t, err)
	must.Equal(t, "findings after the repair", after.Count, 0)
	db = openJournal(t, path)
	wantNoted(t, db, "a", last, "unknown")
	note(t, db, "a", "new")
	wantNoted(t, db, "a", last, "unknown")
}
