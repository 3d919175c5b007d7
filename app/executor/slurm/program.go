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

// program is the copy of this program for the nodes. Its name has its digest, so
// an upgrade adds another copy, and tasks keep the one they were submitted with.
type program struct {
	from, dir string

	mu   sync.Mutex
	path string // once it exists
}

// install returns the path of the copy. It makes the copy if there is none, which a
// later call may find, too: people tidy up shared folders.
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
		return "", fault.Errorf(fault.Unavailable, "This program can't be copied to the folder that is shared with the cluster: %v", err)
	}
	p.path = path
	return path, nil
}

// installed reports whether there was a copy once.
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
