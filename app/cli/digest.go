package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// digester reads files for their SHA-256, and copies them on the way.
type digester struct {
	hash   hash.Hash
	buffer []byte
}

func newDigester() *digester { return &digester{sha256.New(), make([]byte, 256<<10)} }

// path gives the digest and size of a file.
func (d *digester) path(ctx context.Context, path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return d.stream(ctx, io.Discard, f)
}

// copy writes what it reads to a file, which appears whole, durable and
// private, or not at all. What a crash leaves is written over by the next.
func (d *digester) copy(ctx context.Context, path string, from io.Reader) (sum string, size int64, err error) {
	passing := path + passingSuffix
	to, err := os.OpenFile(passing, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", 0, err
	}
	sum, size, err = d.stream(ctx, to, from)
	if err == nil {
		err = to.Sync()
	}
	err = errors.Join(err, to.Close())
	if err == nil {
		err = os.Rename(passing, path)
	}
	if err != nil {
		return "", 0, errors.Join(err, os.Remove(passing))
	}
	return sum, size, nil
}

// passingSuffix ends the name of a file while it is written.
const passingSuffix = ".molrun-new"

func (d *digester) stream(ctx context.Context, to io.Writer, from io.Reader) (sum string, size int64, err error) {
	d.hash.Reset()
	for {
		if ctx.Err() != nil {
			return "", 0, context.Cause(ctx)
		}
		n, readErr := from.Read(d.buffer)
		d.hash.Write(d.buffer[:n])
		size += int64(n)
		if _, err := to.Write(d.buffer[:n]); err != nil {
			return "", 0, err
		}
		if errors.Is(readErr, io.EOF) {
			return hex.EncodeToString(d.hash.Sum(nil)), size, nil
		}
		if readErr != nil {
			return "", 0, readErr
		}
	}
}

// eachFile visits all that is no folder below a folder.
func eachFile(top string, visit func(path string) error) error {
	return filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return visit(path)
	})
}
