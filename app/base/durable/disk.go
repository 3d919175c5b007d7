package durable

import (
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"
)

// Put writes data to the named file with mode 0600. Other processes see it complete or
// not at all. It is durable once the disk has been synced.
func Put(root *os.Root, name string, data []byte) error {
	temporary := path.Join(path.Dir(name), "."+path.Base(name)+".new")
	err := root.WriteFile(temporary, data, 0o600)
	if err == nil {
		err = root.Rename(temporary, name)
	}
	return err
}

// Disk makes all files of one file system durable at once. For many small files, that
// costs far less than syncing each of them. It is safe for concurrent use.
type Disk struct {
	dir *os.File

	mu      sync.Mutex
	waiting []chan error // for a sync that has not started
	syncing bool
	failed  error // error of the first failed sync
}

// OpenDisk opens the file system of a directory. Only errors that occur afterwards are
// detected.
func OpenDisk(dir string) (*Disk, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Disk{dir: f}, nil
}

// Close closes the disk. It must not be called during a sync.
func (d *Disk) Close() error { return d.dir.Close() }

// Sync makes everything durable that was written before the call. Concurrent calls share
// a sync. An error means that something could not be written, by any process; to find out
// what, each file has to be synced individually. The kernel reports a failure only once,
// perhaps to a call before the one that it concerns, so all later calls return the error
// too.
func (d *Disk) Sync() error {
	done := make(chan error, 1)
	d.mu.Lock()
	d.waiting = append(d.waiting, done)
	lead := !d.syncing
	d.syncing = true
	d.mu.Unlock()
	if lead {
		d.lead()
	}
	return <-done
}

// lead syncs until no caller waits. Its own caller is one of the waiters.
func (d *Disk) lead() {
	for {
		d.mu.Lock()
		group := d.waiting
		d.waiting = nil
		d.syncing = len(group) > 0
		d.mu.Unlock()
		if len(group) == 0 {
			return
		}
		err := d.failed
		if err == nil {
			err = unix.Syncfs(int(d.dir.Fd()))
			d.failed = err
		}
		for _, done := range group {
			done <- err
		}
	}
}
