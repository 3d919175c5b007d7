package storage

import (
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
)

// A damaged page can make bbolt fall back to the commit before the last,
// without a word. So the number of the last commit is kept beside the
// database, where a start compares it.
const (
	counterSuffix = ".commits"

	// counterEvery bounds how far the file is behind the last commit: after a
	// second of quiet, and after Close, it is not.
	counterEvery = time.Second
)

// Commits is what the file beside the database says of it.
type Commits struct {
	Lineage string    `json:"lineage"`
	Commit  int64     `json:"commit"`
	At      time.Time `json:"at"` // when it was written, by the wall clock
}

// ReadCommits reads the file beside the database at path. One that can't be
// read is as good as none: fs.ErrNotExist or whatever is wrong with it.
func ReadCommits(path string) (c Commits, err error) {
	text, err := os.ReadFile(path + counterSuffix)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return Commits{}, fmt.Errorf("read the number of the last commit: %w", err)
	}
	return c, nil
}

// lacking tells in words which commits the database has lost, "" if none.
func (c Commits) lacking(lineage string, commit int64) string {
	if c.Lineage != lineage || c.Commit <= commit {
		return ""
	}
	return fmt.Sprintf("the database is at commit %d, but was at commit %d on %s: what was confirmed in between is lost; "+
		"look for faults of the disk, run molrun check, and compare with a backup",
		commit, c.Commit, c.At.UTC().Format(time.DateTime))
}

// counter keeps the file. Its goroutine lives until the store's writer has
// ended.
type counter struct {
	path    string
	lineage string
	warn    func(string)
	commit  atomic.Int64
	rose    chan struct{} // something to write
	ended   chan struct{}

	written int64
	failed  bool // and told
}

// newCounter reads what the file says, tells if the database is behind it, and
// makes the file say where the database is.
func newCounter(db *bolt.DB, warn func(string)) (*counter, error) {
	lineage, err := readMeta(db, metaLineage)
	if err != nil {
		return nil, err
	}
	c := &counter{
		path: db.Path(), lineage: lineage, warn: warn,
		rose: make(chan struct{}, 1), ended: make(chan struct{}), written: -1,
	}
	err = db.View(func(tx *bolt.Tx) error {
		c.commit.Store(int64(tx.ID()))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if before, err := ReadCommits(c.path); err == nil {
		if lost := before.lacking(lineage, c.commit.Load()); lost != "" {
			warn(lost)
		}
	}
	c.write()
	return c, nil
}

// note is told of each commit. It does not wait.
func (c *counter) note(commit int64) {
	c.commit.Store(commit)
	select {
	case c.rose <- struct{}{}:
	default: // the file will be written anyway
	}
}

// run writes the file after commits, at most once in counterEvery, until stop
// is closed; then once more.
func (c *counter) run(stop <-chan struct{}) {
	defer close(c.ended)
	defer c.write()
	timer := time.NewTimer(counterEvery)
	defer timer.Stop()
	for {
		select {
		case <-c.rose:
		case <-stop:
			return
		}
		timer.Reset(counterEvery)
		select {
		case <-timer.C:
			c.write()
		case <-stop:
			return
		}
	}
}

// write makes the file say what the last commit is. Where it can't, as on a
// full disk, the file says less and the next try may succeed.
func (c *counter) write() {
	commit := c.commit.Load()
	if commit == c.written {
		return
	}
	text, err := json.Marshal(Commits{Lineage: c.lineage, Commit: commit, At: time.Now().UTC()})
	if err == nil {
		err = writeFile(c.path+counterSuffix, func(f *os.File) error {
			_, err := f.Write(append(text, '\n'))
			return err
		})
	}
	if err == nil {
		c.written, c.failed = commit, false
		return
	}
	if !c.failed {
		c.failed = true
		c.warn(fmt.Sprintf("the number of the last commit can't be kept beside the database: %v", err))
	}
}
