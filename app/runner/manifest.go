package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"molrun/app"
)

// logName is what clients call the log among a job's files.
const logName = "log.txt"

// hasher reads files for their digests.
type hasher struct {
	check  func() error
	crc    hash.Hash32
	sha    hash.Hash
	buffer []byte
}

func newHasher(check func() error) *hasher {
	return &hasher{check, crc32.NewIEEE(), sha256.New(), make([]byte, 256<<10)}
}

// file reads a file to its end, in one pass, and makes its content durable.
func (h *hasher) file(path string) (m app.ManifestFile, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h.crc.Reset()
	h.sha.Reset()
	for {
		n, err := f.Read(h.buffer)
		h.crc.Write(h.buffer[:n])
		h.sha.Write(h.buffer[:n])
		m.Size += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = h.check()
		}
		if err != nil {
			return m, err
		}
	}
	m.CRC32, m.SHA256 = h.crc.Sum32(), hex.EncodeToString(h.sha.Sum(nil))
	return m, f.Sync()
}

// resultNames gives what clients call the files of a result: their paths, but
// for those whose names the service's own files have.
func resultNames(files []string) []string {
	taken := make(map[string]bool, len(files))
	for _, f := range files {
		taken[f] = true
	}
	names := slices.Clone(files)
	for i, f := range files {
		if f == recordFile || f == logName {
			names[i] = below(taken, f)
			taken[names[i]] = true
		}
	}
	return names
}

// below gives name a place in the folder output, or where the program has a
// file of either name itself, in output~2 and so on.
func below(taken map[string]bool, name string) string {
	folder := "output"
	for n := 2; taken[folder] || taken[folder+"/"+name]; n++ {
		folder = fmt.Sprintf("output~%d", n)
	}
	return folder + "/" + name
}

// writeWhole makes a file appear whole or not at all; its name lasts once the
// folder is synced. What a crash leaves under the passing name is overwritten
// by the next try.
func writeWhole(dir, name string, data []byte) error {
	passing := filepath.Join(dir, "."+name+".new")
	f, err := os.OpenFile(passing, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(passing, filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(passing))
	}
	return nil
}

// touch makes sure that a file is there.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
