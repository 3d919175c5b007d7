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

// digester reads files for their digests.
type digester struct {
	check  func() error
	crc    hash.Hash32
	sha    hash.Hash
	buffer []byte
}

func newDigester(check func() error) *digester {
	return &digester{check, crc32.NewIEEE(), sha256.New(), make([]byte, 256<<10)}
}

// file reads a file to its end, in one pass, and makes its content durable.
func (d *digester) file(path string) (m app.ManifestFile, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
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
	info, err := f.Stat()
	if err != nil {
		return m, err
	}
	m.CRC32, m.SHA256, m.Changed = d.crc.Sum32(), hex.EncodeToString(d.sha.Sum(nil)), info.ModTime().Unix()
	return m, f.Sync()
}
