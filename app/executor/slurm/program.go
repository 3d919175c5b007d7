package slurm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"molrun/app/fault"
)

// program is this program's copy for the nodes. It is named by its digest, so
// an upgrade puts another beside it and tasks keep the one that they were
// submitted with.
type program struct {
	from, dir string

	mu   sync.Mutex
	path string // once it is there
}

// install gives the copy's path. The first call makes it, if it is not there.
func (p *program) install(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path != "" {
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

// copy copies and hashes in one pass, and gives the copy its name at the end.
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
	if err := syncDir(p.dir); err != nil {
		return "", fmt.Errorf("sync: %w", err)
	}
	return path, nil
}
