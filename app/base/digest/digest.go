// Package digest computes SHA-256 digests of files, also while copying them, and of data
// in memory. It reads and writes digest files in the format of sha256sum.
package digest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
)

// Digester computes digests one after the other. It is not safe for concurrent use.
type Digester struct {
	hash   hash.Hash
	buffer []byte
}

// New makes a Digester.
func New() *Digester { return &Digester{sha256.New(), make([]byte, 256<<10)} }

// File returns the digest and size of a file.
func (d *Digester) File(ctx context.Context, path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return d.Stream(ctx, io.Discard, f)
}

// Copy writes a stream to a file, which appears complete, durable and private, or not at
// all. The next Copy to the same path overwrites anything left by a crash.
func (d *Digester) Copy(ctx context.Context, path string, from io.Reader) (sum string, size int64, err error) {
	temporary := path + temporarySuffix
	to, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", 0, err
	}
	sum, size, err = d.Stream(ctx, to, from)
	if err == nil {
		err = to.Sync()
	}
	err = errors.Join(err, to.Close())
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return "", 0, errors.Join(err, os.Remove(temporary))
	}
	return sum, size, nil
}

// temporarySuffix ends the names of files that are being written.
const temporarySuffix = ".molrun-new"

// Stream copies from one stream to another and returns the digest and size. It stops when
// ctx is done.
func (d *Digester) Stream(ctx context.Context, to io.Writer, from io.Reader) (sum string, size int64, err error) {
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

// Parts returns the digest of the parts in hex, each preceded by its length in eight
// bytes, so that no other sequence of parts has the same digest.
func Parts(parts ...[]byte) string {
	h := sha256.New()
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
