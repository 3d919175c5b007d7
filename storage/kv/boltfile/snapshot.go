package boltfile

import (
	"context"
	"io"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// CopyTo atomically writes one consistent state of the database to path, without blocking
// writers.
func CopyTo(ctx context.Context, db *bolt.DB, path string) error {
	return replace(path, func(f *os.File) error {
		return db.View(func(tx *bolt.Tx) error {
			_, err := tx.WriteTo(&contextWriter{ctx, f})
			return err
		})
	})
}

// ReadThrough reads the file sequentially, so that a walk over all pages finds them in
// memory: bbolt maps the file for random access, which reads from the disk page by page.
// Unreadable pages are left for the walk to report.
func ReadThrough(ctx context.Context, db *bolt.DB) error {
	f, err := os.Open(db.Path())
	if err != nil {
		return nil
	}
	defer f.Close()
	_, _ = io.CopyBuffer(&contextWriter{ctx, io.Discard}, struct{ io.Reader }{f}, make([]byte, 1<<20))
	return context.Cause(ctx)
}

// contextWriter fails once its context is done.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

func (c *contextWriter) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}

// Snapshot copies the database to a new temporary file next to it and returns its path.
// The caller removes the file; after a crash RemoveLeftovers does.
func Snapshot(ctx context.Context, db *bolt.DB) (path string, err error) {
	f, err := os.CreateTemp(filepath.Dir(db.Path()), filepath.Base(db.Path())+".snapshot.*"+temporarySuffix)
	if err != nil {
		return "", err
	}
	path = f.Name()
	if err = f.Close(); err == nil {
		err = CopyTo(ctx, db, path)
	}
	if err != nil {
		_ = os.Remove(path) // RemoveLeftovers deletes it otherwise
		return "", err
	}
	return path, nil
}
