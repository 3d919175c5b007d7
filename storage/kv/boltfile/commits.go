package boltfile

import (
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
)

// With a damaged meta page, bbolt silently falls back to the previous commit. So the
// number of the last commit is also kept in a file next to the database and compared on
// every open.
const (
	commitsSuffix = ".commits"

	// writeEvery limits how far that file lags behind the database. It is up to date
	// after a second without commits, and after the store is closed.
	writeEvery = time.Second
)

// Commits is the content of the commits file next to the database.
type Commits struct {
	Lineage string    `json:"lineage"`
	Commit  int64     `json:"commit"`
	At      time.Time `json:"at"` // wall-clock time of the write
}

// ReadCommits reads the commits file of the database at path.
func ReadCommits(path string) (c Commits, err error) {
	text, err := os.ReadFile(path + commitsSuffix)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return Commits{}, fmt.Errorf("read the number of the last commit: %w", err)
	}
	return c, nil
}

// Lost describes the commits that a database of this lineage has lost if commit is its
// last one, or returns "" if it has lost none.
func (c Commits) Lost(lineage string, commit int64) string {
	if c.Lineage != lineage || c.Commit <= commit {
		return ""
	}
	return fmt.Sprintf("the database is at commit %d, but was at commit %d on %s: changes confirmed in between are lost; "+
		"check the disk for errors, run molrun check, and compare with a backup",
		commit, c.Commit, c.At.UTC().Format(time.DateTime))
}

// Counter keeps the commits file up to date.
type Counter struct {
	path    string
	lineage string
	warn    func(string)
	last    atomic.Int64
	noted   chan struct{} // holds a token while the file is out of date
	done    chan struct{}

	written int64
	warned  bool // has reported that the file is not writable
}

// NewCounter warns if the database has lost commits, and updates the file.
func NewCounter(db *bolt.DB, warn func(string)) (*Counter, error) {
	identity, err := ReadIdentity(db)
	if err != nil {
		return nil, err
	}
	c := &Counter{
		path: db.Path(), lineage: identity.Lineage, warn: warn,
		noted: make(chan struct{}, 1), done: make(chan struct{}), written: -1,
	}
	err = db.View(func(tx *bolt.Tx) error {
		c.last.Store(int64(tx.ID()))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if before, err := ReadCommits(c.path); err == nil {
		if lost := before.Lost(c.lineage, c.last.Load()); lost != "" {
			warn(lost)
		}
	}
	c.write()
	return c, nil
}

// Note records a commit without waiting for the file.
func (c *Counter) Note(commit int64) {
	c.last.Store(commit)
	select {
	case c.noted <- struct{}{}:
	default: // a write is already pending
	}
}

// Last returns the number of the last commit on disk.
func (c *Counter) Last() int64 { return c.last.Load() }

// Run writes the file after commits, at most once per writeEvery, and once more when stop
// is closed.
func (c *Counter) Run(stop <-chan struct{}) {
	defer close(c.done)
	defer c.write()
	timer := time.NewTimer(writeEvery)
	defer timer.Stop()
	for {
		select {
		case <-c.noted:
		case <-stop:
			return
		}
		timer.Reset(writeEvery)
		select {
		case <-timer.C:
			c.write()
		case <-stop:
			return
		}
	}
}

// Done is closed once Run has returned.
func (c *Counter) Done() <-chan struct{} { return c.done }

// write writes the file. If it fails, for example on a full disk, the file lags behind
// until a later write succeeds.
func (c *Counter) write() {
	commit := c.last.Load()
	if commit == c.written {
		return
	}
	text, err := json.Marshal(Commits{Lineage: c.lineage, Commit: commit, At: time.Now().UTC()})
	if err == nil {
		err = replace(c.path+commitsSuffix, func(f *os.File) error {
			_, err := f.Write(append(text, '\n'))
			return err
		})
	}
	if err == nil {
		c.written, c.warned = commit, false
		return
	}
	if !c.warned {
		c.warned = true
		c.warn(fmt.Sprintf("could not save the number of the last commit next to the database: %v", err))
	}
}
