package slurm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"molrun/app/base/durable"
	"molrun/app/base/fault"
)

// program is the copy of this program for the nodes. Its name contains its digest, so an
// upgrade adds another copy, and tasks keep the copy they were submitted with.
type program struct {
	from, dir string

	mu   sync.Mutex
	path string // set once it exists
}

// install returns the path of the copy, and creates the copy if it does not exist. Later
// calls check again, because people tidy up shared folders.
func (p *program) install(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path != "" && isThere(p.path) {
		return p.path, nil
	}
	if err := makeDirs(filepath.Dir(p.dir)); err != nil {
		return "", err
	}
	path, err := p.copy(ctx)
	if err != nil {
		return "", fault.Errorf(fault.Unavailable, "could not copy this program to the folder shared with the cluster: %v", err)
	}
	p.path = path
	return path, nil
}

// installed reports whether a copy was ever made.
func (p *program) installed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.path != ""
}

// isThere returns false only if a file is certainly missing.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// copy copies and hashes in one pass, and names the copy at the end.
func (p *program) copy(ctx context.Context) (string, error) {
	in, err := os.Open(p.from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.CreateTemp(p.dir, ".new-*")
	if err != nil {
		return "", err
	}
	digest := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, digest), in)
	if err == nil {
		err = out.Chmod(0o700)
	}
	if err == nil {
		err = out.Sync()
	}
	err = errors.Join(err, out.Close(), ctx.Err())
	path := filepath.Join(p.dir, "molrun-"+hex.EncodeToString(digest.Sum(nil))[:16])
	if err == nil {
		if _, there := os.Stat(path); there == nil {
			return path, os.Remove(out.Name()) // nodes may be running it
		}
		err = os.Rename(out.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(out.Name()))
	}
	if err := durable.SyncFolder(p.dir); err != nil {
		return "", fmt.Errorf("sync: %w", err)
	}
	return path, nil
}
