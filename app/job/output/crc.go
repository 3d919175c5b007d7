package output

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
)

// sumTime is how long a request reads uploads for their CRC-32.
const sumTime = 20 * time.Second

// maxSums is how many uploads may be read in part.
const maxSums = 64

// sums computes the CRC-32 of uploads that an older version received, one at a time. A
// request that runs out of time leaves its progress to the next one.
type sums struct {
	turn    chan struct{} // held by the one request that reads
	partial map[app.UploadID]partialSum
}

// partialSum is the CRC-32 of the beginning of a file.
type partialSum struct {
	crc uint32
	len int64
}

func newSums() sums { return sums{make(chan struct{}, 1), map[app.UploadID]partialSum{}} }

// summed returns what the archive holds, once the CRC-32 of all inputs is stored.
func (s *Results) summed(ctx context.Context, id app.JobID, form app.ArchiveForm) (app.Archive, error) {
	limited, cancel := context.WithTimeout(ctx, sumTime)
	defer cancel()
	for {
		var c *archiveContents
		err := s.store.View(ctx, func(tx app.Tx) (err error) {
			c, err = archiveContentsOf(tx, id, form)
			return err
		})
		if err != nil {
			return app.Archive{}, err
		}
		if len(c.unsummed) == 0 {
			return c.archive, nil
		}
		err = s.sum(limited, c.unsummed)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return app.Archive{}, fault.Errorf(fault.Unavailable, "The inputs are large and are being read for the first time; ask for this link again, and the service goes on where it is.")
		}
		if err != nil {
			return app.Archive{}, err
		}
	}
}

// sum stores the CRC-32 of uploads.
func (s *Results) sum(ctx context.Context, uploads map[app.UploadID]*app.Upload) error {
	select {
	case s.sums.turn <- struct{}{}:
		defer func() { <-s.sums.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, id := range slices.Sorted(maps.Keys(uploads)) {
		u := uploads[id]
		crc, err := s.sums.read(ctx, u, s.blobs.UploadPath(u.ID, u.Generation))
		if errors.Is(err, fs.ErrNotExist) && s.deleted(ctx, id) {
			continue
		}
		if err != nil {
			return err
		}
		if err := s.store.Update(ctx, func(tx app.Tx) error { return putSum(tx, id, crc) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *Results) deleted(ctx context.Context, id app.UploadID) bool {
	err := s.store.View(ctx, func(tx app.Tx) error {
		_, err := tx.Upload(id)
		return err
	})
	return errors.Is(err, fault.NotFound)
}

func putSum(tx app.Tx, id app.UploadID, crc uint32) error {
	u, err := tx.Upload(id)
	if errors.Is(err, fault.NotFound) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	u.CRC32 = &crc
	return tx.PutUpload(u)
}

// read reads an upload on from where the last request stopped. Its bytes never change.
func (s *sums) read(ctx context.Context, u *app.Upload, path string) (uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("read upload %s: %w", u.ID, err)
	}
	defer f.Close() // only read from
	have, buffer := s.partial[u.ID], make([]byte, 256<<10)
	for have.len < u.Size {
		if err := ctx.Err(); err != nil {
			s.keep(u.ID, have)
			return 0, err
		}
		n, err := f.ReadAt(buffer[:min(int64(len(buffer)), u.Size-have.len)], have.len)
		if err != nil && (err != io.EOF || n == 0) {
			return 0, fmt.Errorf("read upload %s: %w", u.ID, err)
		}
		have.crc = crc32.Update(have.crc, crc32.IEEETable, buffer[:n])
		have.len += int64(n)
	}
	delete(s.partial, u.ID)
	return have.crc, nil
}

func (s *sums) keep(id app.UploadID, have partialSum) {
	if len(s.partial) >= maxSums {
		clear(s.partial)
	}
	s.partial[id] = have
}
