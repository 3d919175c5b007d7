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

	"molrun/app"
)

// incoming is a file that arrives: a temporary one until publish gives it the
// name of a generation.
type incoming struct {
	dir     *Dir
	file    *os.File
	name    string // the temporary one
	size    int64
	checked int64 // size at which free space was last looked at
	digest  hash.Hash
	room    *app.Reservation // of the quota
}

// receive begins a file. A length of at least 0 is known beforehand and
// reserved at once, so a full disk is known before the bytes are sent.
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

// sum gives the SHA-256 of what was written.
func (in *incoming) sum() string { return hex.EncodeToString(in.digest.Sum(nil)) }

// publish makes the file durable under the first free generation from the
// given one on, and gives that. No record names it yet.
func (in *incoming) publish(id app.UploadID, generation int) (int, error) {
	err := in.file.Sync()
	err = errors.Join(err, in.file.Close())
	in.file = nil
	if err == nil {
		err = in.dir.makeShard(shardOf(id))
	}
	if err != nil {
		return 0, diskError("store file", err)
	}
	generation, err = in.link(id, generation)
	if err != nil {
		return 0, diskError("store file", err)
	}
	name := uploadName(id, generation)
	if err := syncDir(in.dir.root, path.Dir(name)); err != nil {
		return 0, diskError("store file", errors.Join(err, in.dir.root.Remove(name)))
	}
	return generation, nil
}

// link gives the file its final name. Unlike a rename, a link never replaces,
// so two files can't get the same generation; a name that a crash left behind
// is passed over. The temporary name goes with discard.
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
// published. It has to be called in any case.
func (in *incoming) discard() error {
	var err error
	if in.file != nil {
		err = in.file.Close()
		in.file = nil
	}
	return errors.Join(err, in.dir.root.Remove(in.name))
}

// makeShard makes a directory below uploads durable before anything in it is.
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
	if err := syncDir(d.root, uploadsDir); err != nil {
		return err
	}
	d.shards[shard] = true
	return nil
}
