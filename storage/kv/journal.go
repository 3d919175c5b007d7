package kv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"

	"molrun/app/base/events"
)

// Journal is a ring of the latest entries of each owner, in commit order. An entry is
// written by the transaction whose change it describes.
type Journal struct {
	Bucket  string
	Entries int // maximum entries per owner
	Bytes   int // maximum total size of their values
}

// Note is an entry that a transaction adds to the journal when it commits.
type Note struct {
	Owner string
	Value []byte
	// Replaces, if not empty, removes an earlier note of this transaction with the same
	// value of Replaces.
	Replaces string
	// Attached is passed to the subscribers of OnNoted.
	Attached any
}

// notes holds the notes of a transaction; a removed one has no owner.
type notes struct {
	all     []Note
	instead map[string]int
}

// AddNote adds an entry to the journal.
func (t *Tx) AddNote(n Note) {
	if n.Replaces != "" {
		if t.notes.instead == nil {
			t.notes.instead = map[string]int{}
		}
		if earlier, found := t.notes.instead[n.Replaces]; found {
			t.notes.all[earlier] = Note{}
		}
		t.notes.instead[n.Replaces] = len(t.notes.all)
	}
	t.notes.all = append(t.notes.all, n)
}

// Layout of an entry. The key is the owner and a number; the value is the cumulative size
// of the owner's entries (8 bytes), the checksum over all of them (4 bytes), then the
// note. The size of a ring is thus the difference between its ends.
const journalHead = 12

type journalEntry struct {
	id    events.ID
	total uint64 // bytes of all entries up to and including this one
	value []byte
}

func journalKey(owner string, number uint64) Key {
	return binary.BigEndian.AppendUint64(Key{}.Text(owner), number)
}

// readEntry decodes an entry; the key ends with its number.
func readEntry(key Key, value []byte) (e journalEntry, err error) {
	if len(key) < 8 || len(value) < journalHead {
		return e, ErrKey
	}
	e.id.Number = binary.BigEndian.Uint64(key[len(key)-8:])
	e.total = binary.BigEndian.Uint64(value)
	e.id.Sum = binary.BigEndian.Uint32(value[8:])
	e.value = value[journalHead:]
	return e, nil
}

// follow returns the entry that follows e and has this value.
func (e journalEntry) follow(value []byte) journalEntry {
	sum := binary.BigEndian.AppendUint32(nil, e.id.Sum)
	return journalEntry{
		id:    events.ID{Number: e.id.Number + 1, Sum: crc32.Update(crc32.Checksum(sum, polynomial), polynomial, value)},
		total: e.total + uint64(len(value)),
		value: value,
	}
}

func (e journalEntry) encode() []byte {
	b := make([]byte, 0, journalHead+len(e.value))
	b = binary.BigEndian.AppendUint64(b, e.total)
	b = binary.BigEndian.AppendUint32(b, e.id.Sum)
	return append(b, e.value...)
}

// writeNotes writes the notes of a transaction and drops the oldest entries over the
// limits. It runs once, at commit.
func (t *Tx) writeNotes() ([]events.Entry, error) {
	if len(t.notes.all) == 0 {
		return nil, nil
	}
	last := map[string]journalEntry{}
	for _, n := range t.notes.all {
		if _, known := last[n.Owner]; n.Owner == "" || known {
			continue
		}
		e, err := t.lastEntry(n.Owner)
		if err != nil {
			return nil, err
		}
		last[n.Owner] = e
	}
	written := make([]events.Entry, 0, len(t.notes.all))
	for _, n := range t.notes.all {
		if n.Owner == "" {
			continue
		}
		e := last[n.Owner].follow(n.Value)
		if err := t.Put(t.schema.Journal.Bucket, journalKey(n.Owner, e.id.Number), e.encode()); err != nil {
			return nil, err
		}
		last[n.Owner] = e
		written = append(written, events.Entry{ID: e.id, Owner: n.Owner, Value: n.Value, Attached: n.Attached})
	}
	for owner, e := range last {
		if err := t.trim(owner, e); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// lastEntry returns the newest entry of an owner, or one with number 0 if there is none.
// The transaction must not have dropped entries before; Back explains why.
func (t *Tx) lastEntry(owner string) (e journalEntry, err error) {
	prefix := Key{}.Text(owner)
	c := t.Bucket(t.schema.Journal.Bucket).Cursor()
	last := c.Prev
	if k, _ := c.Seek(prefix.End()); k == nil {
		last = c.Last
	}
	k, v := last()
	if !isEntryOf(prefix, k) {
		return e, nil
	}
	return readEntry(k, v)
}

func isEntryOf(prefix, k Key) bool { return len(k) == len(prefix)+8 && bytes.HasPrefix(k, prefix) }

// trim drops the oldest entries of an owner over the limits; last is the newest entry.
func (t *Tx) trim(owner string, last journalEntry) error {
	j := t.schema.Journal
	var drop []Key
	for e, err := range t.entries(owner, 0) {
		if err != nil {
			return err
		}
		entries := last.id.Number - e.id.Number + 1
		size := last.total - e.total + uint64(len(e.value))
		if entries <= uint64(j.Entries) && size <= uint64(j.Bytes) || e.id == last.id {
			break
		}
		drop = append(drop, journalKey(owner, e.id.Number))
	}
	for _, k := range drop {
		if err := t.Delete(j.Bucket, k); err != nil {
			return err
		}
	}
	return nil
}

// entries iterates over the entries of an owner, starting at a number.
func (t *Tx) entries(owner string, from uint64) iter.Seq2[journalEntry, error] {
	prefix := Key{}.Text(owner)
	return func(yield func(journalEntry, error) bool) {
		w := t.Walk(t.schema.Journal.Bucket)
		for w.Seek(journalKey(owner, from)); isEntryOf(prefix, w.Key); w.Next() {
			e, err := readEntry(w.Key, w.Value)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// LastEntry returns the position of the newest entry of an owner.
func (t *Tx) LastEntry(owner string) (events.ID, error) {
	e, err := t.lastEntry(owner)
	return e.id, err
}

// EntriesAfter iterates over the entries of an owner after a position, oldest first. known
// is false if the entries after that position have been dropped or never existed.
func (t *Tx) EntriesAfter(owner string, after events.ID) (entries iter.Seq2[events.Entry, error], known bool, err error) {
	first := journalEntry{}
	for first, err = range t.entries(owner, after.Number) {
		break
	}
	switch {
	case err != nil:
		return nil, false, err
	case after == events.ID{}:
		known = first.id.Number <= 1
	default:
		known = first.id == after
	}
	return func(yield func(events.Entry, error) bool) {
		for e, err := range t.entries(owner, after.Number+1) {
			if !yield(events.Entry{ID: e.id, Owner: owner, Value: e.value}, err) {
				return
			}
		}
	}, known, nil
}

// checkJournal reports breaks in the sequence of entries. A repair empties the journal,
// so that no event can be mistaken for another.
func checkJournal(t *Tx, found *ProblemList) {
	j := t.schema.Journal
	if j == nil || !t.Has(j.Bucket) {
		return
	}
	var owner Key
	var last journalEntry
	for k, v := range t.Ascend(j.Bucket, nil) {
		e, err := readEntry(k, v)
		if err != nil {
			found.AddDerivablef("%s: %v", j.Bucket, err)
			continue
		}
		if of := k[:len(k)-8]; bytes.Equal(of, owner) && last.follow(e.value).mark() != e.mark() {
			found.AddDerivablef("%s: entry %s does not follow %s", j.Bucket, e.id, last.id)
		} else if !bytes.Equal(of, owner) {
			owner = bytes.Clone(of)
		}
		last = e
	}
}

// mark is the part of an entry that is determined by its value and the previous entry.
func (e journalEntry) mark() [2]any { return [2]any{e.id, e.total} }

// repairJournal empties a journal with a broken sequence of entries.
func repairJournal(t *Tx) error {
	var found ProblemList
	if checkJournal(t, &found); found.Count == 0 {
		return nil
	}
	name := []byte(t.schema.Journal.Bucket)
	if err := t.bolt.DeleteBucket(name); err != nil {
		return fmt.Errorf("empty %s: %w", name, err)
	}
	_, err := t.bolt.CreateBucket(name)
	return err
}

// OnNoted calls notify with the notes of each commit once they are on disk, in commit
// order, before the calls of Update return. notify must neither block nor use the
// database. It is called after previously registered functions.
func (db *DB) OnNoted(notify func([]events.Entry)) {
	all := notify
	if before := db.writer.notify.Load(); before != nil {
		all = func(noted []events.Entry) { (*before)(noted); notify(noted) }
	}
	db.writer.notify.Store(&all)
}
