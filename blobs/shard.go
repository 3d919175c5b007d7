package blobs

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"molrun/app/base/durable"
)

// shard is an open directory in uploads. Its files can be made durable or removed without
// opening another file descriptor, even if the process has reached its limit.
type shard struct {
	root *os.Root
	dir  *os.File
}

// openShard opens a directory in uploads, creating it if necessary.
func (d *Dir) openShard(name string) (*shard, error) {
	if err := d.makeShard(name); err != nil {
		return nil, err
	}
	root, err := d.root.OpenRoot(path.Join(uploadsDir, name))
	if err != nil {
		return nil, err
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &shard{root, dir}, nil
}

// makeShard creates a directory in uploads and makes it durable before any file in it.
func (d *Dir) makeShard(name string) error {
	d.shardMu.Lock()
	defer d.shardMu.Unlock()
	if d.shards[name] {
		return nil
	}
	err := d.root.Mkdir(path.Join(uploadsDir, name), 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := durable.SyncDir(d.root, uploadsDir); err != nil {
		return err
	}
	d.shards[name] = true
	return nil
}

// syncOrRemove makes a file of the directory durable, or removes it on failure.
func (s *shard) syncOrRemove(name string) error {
	err := s.dir.Sync()
	if err != nil {
		err = errors.Join(err, s.root.Remove(name))
	}
	return err
}

func (s *shard) close() {
	s.dir.Close() // it was only synced, and sync errors have been reported
	s.root.Close()
}
