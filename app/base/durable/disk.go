package durable

import (
	"os"
	"path"
	"sync"

	"golang.org/x/sys/unix"
)

// Put writes data to the named file with mode 0600, whole or not at all as other processes
// see it. It is durable once the disk was synced.
func Put(root *os.Root, name string, data []byte) error {
	temporary := path.Join(path.Dir(name), "."+path.Base(name)+".new")
	err := root.WriteFile(temporary, data, 0o600)
	if err == nil {
		err = root.Rename(temporary, name)
	}
	return err
}

// Disk makes all files of one file system durable at once. Many small files cost far less
// so than a sync each. It may be used concurrently.
type Disk struct {
	dir *os.File

	mu      sync.Mutex
	waiting []chan error // for a sync that is still to begin
	syncing bool
	failed  error // of the first sync that failed
}

// OpenDisk opens the file system of a directory. Only errors from then on are seen.
func OpenDisk(dir string) (*Disk, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Disk{dir: f}, nil
}

// Close closes the disk. No sync may be under way.
func (d *Disk) Close() error { return d.dir.Close() }

// Sync makes durable what was written before it is called. Calls at the same time share
// a sync. An error says that something could not be written, by any process: then each file has
// to be synced by itself to know. The kernel reports a failure once, perhaps to a call
// before that of whom it concerns, so all later calls return the error too.
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

// lead syncs until no caller waits. Its own caller is one of them.
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
