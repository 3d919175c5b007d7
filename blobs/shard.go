package blobs

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"molrun/app/base/durable"
)

// shard is an open directory in uploads. What is put into it can be made durable, or
// be removed again, without another descriptor: the process may have none left.
type shard struct {
	root *os.Root
	dir  *os.File
}

// openShard opens a directory in uploads, and makes it first if need be.
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

// makeShard makes a directory in uploads durable before any file in it is.
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

// keep makes a file of the directory durable, or removes it.
func (s *shard) keep(name string) error {
	err := s.dir.Sync()
	if err != nil {
		err = errors.Join(err, s.root.Remove(name))
	}
	return err
}

func (s *shard) close() {
	s.dir.Close() // only synced, and that was reported
	s.root.Close()
}
