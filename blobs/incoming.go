package blobs

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"syscall"

	"molrun/app"
	"molrun/app/durable"
)

// spaceInterval is how many bytes of an upload are received between two checks
// of the free space.
const spaceInterval = 64 << 20

// incoming is a file being received. It has a temporary name until publish
// gives it the name of a generation.
type incoming struct {
	dir     *Dir
	file    *os.File // nil once closed
	name    string   // the temporary one
	size    int64
	checked int64 // size at the last check of the free space
	digest  hash.Hash
}

// receive begins a file. It reserves a known length, at least 0, so that a full
// disk shows before the bytes are sent. The caller must call discard.
func (d *Dir) receive(length int64) (*incoming, error) {
	if err := d.checkSpace(max(length, 0)); err != nil {
		return nil, err
	}
	name := path.Join(tmpDir, d.run+"."+rand.Text())
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, diskError("receive file", err)
	}
	in := &incoming{dir: d, file: f, name: name, digest: sha256.New()}
	if length > 0 {
		if err := preallocate(f, length); err != nil {
			return nil, errors.Join(diskError("reserve space", err), in.discard())
		}
	}
	return in, nil
}

// checkSpace refuses an upload of this length if it would use up the reserve.
// The reserve lets records be written on a disk that uploads have filled.
func (d *Dir) checkSpace(length int64) error {
	disk, err := d.Disk()
	if err == nil && disk.Free-length < disk.Reserve {
		err = fmt.Errorf("%d bytes free, %d wanted, %d reserved: %w", disk.Free, length, disk.Reserve, syscall.ENOSPC)
	}
	return diskError("check free space", err)
}

// Write adds to the file and its digest.
func (in *incoming) Write(p []byte) (int, error) {
	n, err := in.file.Write(p)
	in.digest.Write(p[:n])
	in.size += int64(n)
	if err != nil {
		return n, diskError("receive file", err)
	}
	if in.size-in.checked >= spaceInterval {
		in.checked = in.size
		return n, in.dir.checkSpace(0)
	}
	return n, nil
}

// sum returns the SHA-256 of what was written.
func (in *incoming) sum() string { return hex.EncodeToString(in.digest.Sum(nil)) }

// publish makes the file durable under the first unused generation from the
// given one on, and returns that generation. No record names it yet.
func (in *incoming) publish(id app.UploadID, generation int) (int, error) {
	err := errors.Join(in.file.Sync(), in.file.Close())
	in.file = nil
	if err == nil {
		err = in.dir.makeShard(shardOf(id))
	}
	if err == nil {
		generation, err = in.link(id, generation)
	}
	if err != nil {
		return 0, diskError("store file", err)
	}
	name := uploadName(id, generation)
	if err := durable.SyncDir(in.dir.root, path.Dir(name)); err != nil {
		return 0, diskError("store file", errors.Join(err, in.dir.root.Remove(name)))
	}
	return generation, nil
}

// makeShard makes a directory in uploads durable before any file in it is.
func (d *Dir) makeShard(shard string) error {
	d.shardMu.Lock()
	defer d.shardMu.Unlock()
	if d.shards[shard] {
		return nil
	}
	err := d.root.Mkdir(path.Join(uploadsDir, shard), 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := durable.SyncDir(d.root, uploadsDir); err != nil {
		return err
	}
	d.shards[shard] = true
	return nil
}

// link gives the file its final name. A link, unlike a rename, never replaces a
// file, so two files cannot get the same generation. It skips generations that
// a crash left behind. discard removes the temporary name.
func (in *incoming) link(id app.UploadID, generation int) (int, error) {
	for range 1000 {
		err := in.dir.root.Link(in.name, uploadName(id, generation))
		if !errors.Is(err, fs.ErrExist) {
			return generation, err
		}
		generation++
	}
	return 0, fmt.Errorf("upload %s has too many generations that no record names", id)
}

// discard removes the temporary name, and with it the bytes unless they were
// published.
func (in *incoming) discard() error {
	var err error
	if in.file != nil {
		err = in.file.Close()
		in.file = nil
	}
	return errors.Join(err, in.dir.root.Remove(in.name))
}
