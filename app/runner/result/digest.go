package result

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"syscall"

	"molrun/app"
)

// digester computes the digests of files.
type digester struct {
	check  func() error
	sync   bool // sync content to disk
	crc    hash.Hash32
	sha    hash.Hash
	buffer []byte
}

func newDigester(check func() error, sync bool) *digester {
	return &digester{check, sync, crc32.NewIEEE(), sha256.New(), nil}
}

// largestBuffer is the read size for large files.
const largestBuffer = 256 << 10

// file reads a file to its end in one pass, and makes its content durable if d.sync is
// set.
func (d *digester) file(path string) (m app.ManifestFile, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return m, err
	}
	if size := int(min(info.Size()+1, largestBuffer)); len(d.buffer) < size {
		d.buffer = make([]byte, max(size, 4<<10)) // most results are small
	}
	d.crc.Reset()
	d.sha.Reset()
	for {
		n, err := f.Read(d.buffer)
		d.crc.Write(d.buffer[:n])
		d.sha.Write(d.buffer[:n])
		m.Size += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = d.check()
		}
		if err != nil {
			return m, err
		}
	}
	if info, err = f.Stat(); err != nil {
		return m, err
	}
	m.CRC32, m.SHA256, m.Changed = d.crc.Sum32(), hex.EncodeToString(d.sha.Sum(nil)), info.ModTime().Unix()
	if !d.sync {
		return m, nil
	}
	return m, f.Sync()
}
