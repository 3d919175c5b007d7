package backup

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"

	"molrun/app/server/snapshot"
	"molrun/blobs"
)

// compare records damage if a file of the data directory differs from the backup's copy.
// It reads the file only if its time differs from the copy's, or in a deep backup.
func (t *taking) compare(ctx context.Context, f blobs.File, sum, copied string, info fs.FileInfo) error {
	if f.Changing {
		return nil
	}
	live, err := t.snapshot.Files.Stat(f.Path)
	if err != nil {
		t.damagef("%s can't be read: %v", f, err)
		return nil
	}
	f.SHA256, f.Size = sum, info.Size()
	if why := snapshot.Mismatch(f, sum, live.Size()); why != "" {
		t.damagef("%s %s", f, why)
		return nil
	}
	sameTime := live.ModTime().Equal(info.ModTime())
	if sameTime && !t.deep {
		return nil
	}
	found, err := t.liveDigest(ctx, f.Path)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		t.damagef("%s can't be read: %v", f, err)
	case found != sum:
		t.damagef("%s %s", f, snapshot.Mismatch(f, found, live.Size()))
	case !sameTime:
		return os.Chtimes(copied, live.ModTime(), live.ModTime()) // so that the next backup need not read it
	}
	return nil
}

func (t *taking) liveDigest(ctx context.Context, name string) (string, error) {
	file, _, err := t.snapshot.Files.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum, _, err := t.digests.Stream(ctx, io.Discard, file)
	return sum, err
}

// damagef records damage to the data directory that the backup does not have.
func (t *taking) damagef(format string, args ...any) {
	if len(t.record.Damaged) < maxProblems {
		t.record.Damaged = append(t.record.Damaged, fmt.Sprintf(format, args...))
	}
}
