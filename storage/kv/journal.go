package kv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"

	"molrun/app/base/events"
)

// Journal keeps the latest entries of each owner, in the order of their commits:
// a ring. An entry is written by the transaction whose change it describes.
type Journal struct {
	Bucket  string
	Entries int // kept of each owner
	Bytes   int // of their values
}

// Note is an entry that a transaction adds to the journal when it commits.
type Note struct {
	Owner string
	Value []byte
	// Instead, if not empty, removes an earlier note of this transaction with the
	// same text.
	Instead string
	// Attached is passed to the subscribers of OnNoted.
	Attached any
}

// notes are those of a transaction; one that was removed has no owner.
type notes struct {
	all     []Note
	instead map[string]int
}

// Note adds an entry to the journal.
func (t *Tx) Note(n Note) {
	if n.Instead != "" {
		if t.notes.instead == nil {
			t.notes.instead = map[string]int{}
		}
		if earlier, found := t.notes.instead[n.Instead]; found {
			t.notes.all[earlier] = Note{}
		}
		t.notes.instead[n.Instead] = len(t.notes.all)
	}
	t.notes.all = append(t.notes.all, n)
}

// An entry: key owner, number; value the bytes of all entries of the owner so far
// (8), the checksum over all of them (4), then what was noted. So the length of a
// ring follows from its ends.
const journalHead = 12

type journalEntry struct {
	id    events.ID
	total uint64 // bytes of all entries up to this one
	value []byte
}

func journalKey(owner string, number uint64) Key {
	return binary.BigEndian.AppendUint64(Key{}.Text(owner), number)
}

// readEntry reads an entry; the key ends with its number.
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

// follow returns the entry behind e with a value.
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

// writeNotes writes the notes of a transaction and drops the oldest entries beyond
// the bounds. It runs once, at the commit.
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

// lastEntry returns the newest entry of an owner, of number 0 if there is none. A
// transaction that writes has dropped none before: see Descend.
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

// trim drops the oldest entries of an owner beyond the bounds; last is the newest.
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

// entries walks the entries of an owner from a number on.
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

// LastNoted returns the place of the newest entry of an owner.
func (t *Tx) LastNoted(owner string) (events.ID, error) {
	e, err := t.lastEntry(owner)
	return e.id, err
}

// NotedAfter walks the entries of an owner behind a place, oldest first. It returns
// false if the entries from there on are no longer known, or never were.
func (t *Tx) NotedAfter(owner string, after events.ID) (entries iter.Seq2[events.Entry, error], known bool, err error) {
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

// checkJournal finds entries that do not follow one another. A repair empties the
// journal, so that no event can be mistaken for another.
func checkJournal(t *Tx, found *Findings) {
	j := t.schema.Journal
	if j == nil || !t.Has(j.Bucket) {
		return
	}
	var owner Key
	var last journalEntry
	for k, v := range t.Ascend(j.Bucket, nil) {
		e, err := readEntry(k, v)
		if err != nil {
			found.Derivef("%s: %v", j.Bucket, err)
			continue
		}
		if of := k[:len(k)-8]; bytes.Equal(of, owner) && last.follow(e.value).mark() != e.mark() {
			found.Derivef("%s: entry %s does not follow %s", j.Bucket, e.id, last.id)
		} else if !bytes.Equal(of, owner) {
			owner = bytes.Clone(of)
		}
		last = e
	}
}

// mark is what an entry and the one before it decide of it.
func (e journalEntry) mark() [2]any { return [2]any{e.id, e.total} }

// repairJournal empties a journal whose entries do not follow one another.
func repairJournal(t *Tx) error {
	var found Findings
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

// OnNoted calls notify with the notes of each commit once they are on the disk, in
// the order of commits, before the calls of Update return. notify must not wait and
// not use the database. It is called after those that were given before.
func (db *DB) OnNoted(notify func([]events.Entry)) {
	all := notify
	if before := db.writer.notify.Load(); before != nil {
		all = func(noted []events.Entry) { (*before)(noted); notify(noted) }
	}
	db.writer.notify.Store(&all)
}
