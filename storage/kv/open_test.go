package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"molrun/app/base/fault"
	"molrun/app/test/must"
)

func TestDatabaseIsPrivateToItsUser(t *testing.T) {
	info, err := os.Stat(openNew(t).Path())
	must.OK(t, err)
	must.Equal(t, "mode", info.Mode().Perm(), 0o600)
}

// calls returns the operations on a database file, by name.
func calls(ctx context.Context) map[string]func(path string) error {
	return map[string]func(path string) error{
		"open": func(path string) error {
			db, err := Open(path, schemaWith(), Options{})
			if err == nil {
				err = db.Close()
			}
			return err
		},
		"open read-only": func(path string) error {
			r, err := OpenReadOnly(path, schemaWith())
			if err == nil {
				err = r.Close()
			}
			return err
		},
		"repair":  func(path string) error { _, err := Repair(ctx, path, schemaWith(), Options{}); return err },
		"compact": func(path string) error { _, err := Compact(ctx, path, schemaWith(), Options{}); return err },
	}
}

// In a synctest bubble, waiting for a lock takes no time.
func TestLockedDatabaseIsRefused(t *testing.T) {
	refused := func(t *testing.T, path, call string) {
		t.Helper()
		err := calls(t.Context())[call](path)
		holder := fmt.Sprintf("(process %d)", os.Getpid())
		if _, statErr := os.Stat("/proc/locks"); statErr != nil {
			holder = "another process"
		}
		if !errors.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), holder) || !strings.Contains(err.Error(), "stop it first") {
			t.Errorf("error %v, want UNAVAILABLE, %q and what to do", err, holder)
		}
	}
	for call := range calls(t.Context()) {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := withThings(t, 1)
				openAt(t, path, Options{})
				refused(t, path, call)
			})
		})
	}
	t.Run("open while it is read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			path := withThings(t, 1)
			r, err := OpenReadOnly(path, schemaWith())
			must.OK(t, err)
			defer r.Close()
			refused(t, path, "open")
		})
	})
}

func TestRepairAndCompactRefuse(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx     context.Context
		damage  func(path string)
		message string
	}{
		"damaged pages": {t.Context(), func(path string) {
			db := openAt(t, path, Options{})
			zeroRoot(t, db, indexKind)
			must.OK(t, db.Close())
		}, "restore a backup"},
		"a newer version": {t.Context(), func(path string) {
			step := func(*bolt.Tx) error { return nil }
			must.OK(t, openAt(t, path, Options{}, step).Close())
		}, "newer version"},
		"to go on without their context": {ended, func(string) {}, context.Canceled.Error()},
	} {
		path := withThings(t, 300)
		tt.damage(path)
		before, err := os.ReadFile(path)
		must.OK(t, err)
		for _, call := range []string{"repair", "compact"} {
			must.Fail(t, fmt.Sprintf("%s %s", call, name), calls(tt.ctx)[call](path), tt.message)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the database was changed (%v)", name, err)
		}
	}
}

func TestBrokenFileIsRefusedAndLeftAlone(t *testing.T) {
	for _, tt := range []struct {
		name, message string
		damage        func(path string) error
	}{
		{"missing", "missing", os.Remove},
		{"empty", "empty", func(path string) error { return os.Truncate(path, 0) }},
		{"truncated after the first pages", "damaged", func(path string) error { return os.Truncate(path, 4*4096) }},
		{"truncated within the first page", "damaged", func(path string) error { return os.Truncate(path, 100) }},
		{"both meta pages overwritten", "damaged", func(path string) error {
			return overwrite(path, 0, make([]byte, 2*4096))
		}},
		{"all overwritten with text", "damaged", func(path string) error {
			return overwrite(path, 0, []byte(strings.Repeat("not a database\n", 4096)))
		}},
		{"all but the meta pages overwritten", "damaged", func(path string) error {
			return overwrite(path, 2*4096, make([]byte, 4<<20))
		}},
		{"another database", "has been replaced by another one", func(path string) error {
			other, err := os.ReadFile(withThings(t, 1))
			return errors.Join(err, os.WriteFile(path, other, 0o600))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := withThings(t, 200)
			must.OK(t, tt.damage(path))
			refused(t, path, tt.message)
		})
	}
}

func TestDatabaseOfAnotherProgramIsRefused(t *testing.T) {
	path := newPath(t)
	edit(t, path, func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("theirs"))
		return err
	})
	refused(t, path, "belongs to another program")
}

// refused checks that a database can be neither opened nor changed.
func refused(t *testing.T, path, message string) {
	t.Helper()
	before, _ := os.ReadFile(path)
	if db, err := Open(path, schemaWith(), Options{}); err == nil {
		t.Fatal(errors.Join(errors.New("it was opened"), db.Close()))
	} else if !strings.Contains(err.Error(), message) {
		t.Errorf("error %q, want it to say %q", err, message)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the refused file was changed")
	}
}

// If the file outgrew its map, the writer would wait for the reader.
func TestGrowingFileDoesNotWaitForReaders(t *testing.T) {
	db := openNew(t)
	view(t, db, func(*Tx) error {
		grown := make(chan error, 6)
		go func() {
			for n := range cap(grown) {
				grown <- db.Update(context.Background(), func(tx *Tx) error {
					return tx.Put(bucketNotes, []byte(fmt.Sprint(n)), make([]byte, 4<<20))
				})
			}
		}()
		for range cap(grown) {
			select {
			case err := <-grown:
				must.OK(t, err)
			case <-time.After(must.Patience):
				return errors.New("the writer waits for a reader")
			}
		}
		return nil
	})
	if info, err := os.Stat(db.Path()); err != nil || info.Size() < 20<<20 {
		t.Errorf("the file has not grown beyond 20 MiB: %v, %v", info.Size(), err)
	}
}
