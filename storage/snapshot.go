package storage

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	bolt "go.etcd.io/bbolt"

	"molrun/app/fault"
)

// Snapshot writes the database as it is now to a file beside it and gives the
// file's path. It stands in no writer's way. The file is the caller's to
// remove; what a crash leaves of it goes at the next Open.
func (s *Store) Snapshot(ctx context.Context) (path string, err error) {
	if err := s.ready(ctx); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(s.db.Path()), filepath.Base(s.db.Path())+".snapshot.*.tmp")
	if err != nil {
		return "", fmt.Errorf("make a snapshot: %w", err)
	}
	path = f.Name()
	if err = f.Close(); err == nil {
		err = snapshot(ctx, s.db, path)
	}
	if err != nil {
		_ = os.Remove(path) // else the next Open does
		if isFull(err) {
			return "", &fault.Error{Code: fault.StorageFull, Message: "the disk has no room for a snapshot of the database; make some and try again", Err: err}
		}
		return "", fmt.Errorf("make a snapshot: %w", err)
	}
	return path, nil
}

// snapshot writes one consistent state to path, whole or not at all.
func snapshot(ctx context.Context, db *bolt.DB, path string) error {
	return writeFile(path, func(f *os.File) error {
		return db.View(func(tx *bolt.Tx) error {
			_, err := tx.WriteTo(&endingWriter{ctx, f})
			return err
		})
	})
}

// endingWriter ends with its context.
type endingWriter struct {
	ctx context.Context
	w   io.Writer
}

func (e *endingWriter) Write(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.w.Write(p)
}

// removeLeftovers removes what processes before left half written. The caller
// holds the database, so nobody else writes there.
func removeLeftovers(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)+".") && strings.HasSuffix(e.Name(), ".tmp") {
			if err := os.Remove(filepath.Join(filepath.Dir(path), e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
