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
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode %o, want 600", got)
	}
}

// In a bubble, waiting for a lock takes no time.
func TestLockedDatabaseIsRefused(t *testing.T) {
	open := func(path string) error {
		db, err := Open(path, schemaWith(), Options{})
		if err == nil {
			must.OK(t, db.Close())
		}
		return err
	}
	openReadOnly := func(path string) error {
		r, err := OpenReadOnly(path, schemaWith())
		if err == nil {
			must.OK(t, r.Close())
		}
		return err
	}
	repair := func(path string) error {
		_, err := Repair(t.Context(), path, schemaWith(), Options{})
		return err
	}
	compact := func(path string) error {
		_, err := Compact(t.Context(), path, schemaWith(), Options{})
		return err
	}
	for _, tt := range []struct {
		name     string
		readOnly bool // the holder
		open     func(path string) error
	}{
		{"open", false, open},
		{"open while it is read", true, open},
		{"open read-only", false, openReadOnly},
		{"repair", false, repair},
		{"compact", false, compact},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := withThings(t, 1)
				if tt.readOnly {
					r, err := OpenReadOnly(path, schemaWith())
					must.OK(t, err)
					defer r.Close()
				} else {
					openAt(t, path, Options{})
				}
				err := tt.open(path)
				if !errors.Is(err, fault.Unavailable) {
					t.Fatalf("error %v, want UNAVAILABLE", err)
				}
				holder := fmt.Sprintf("(process %d)", os.Getpid())
				if _, statErr := os.Stat("/proc/locks"); statErr != nil {
					holder = "another process"
				}
				if !strings.Contains(err.Error(), holder) || !strings.Contains(err.Error(), "stop it first") {
					t.Errorf("error %q, want it to name %q and what to do", err, holder)
				}
			})
		})
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
		{"another database", "not the one that was here", func(path string) error {
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
	refused(t, path, "another program's")
}

// refused expects that a database is neither opened nor changed.
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

// The writer would wait for the reader if the file outgrew its map.
func TestGrowingFileDoesNotWaitForReaders(t *testing.T) {
	db := openNew(t)
	view(t, db, func(*Tx) error {
		grown := make(chan error, 1)
		go func() {
			big := make([]byte, 4<<20)
			for n := range 6 {
				err := db.Update(context.Background(), func(tx *Tx) error {
					return tx.Put(bucketNotes, []byte(fmt.Sprint(n)), big)
				})
				if err != nil {
					grown <- err
					return
				}
			}
			grown <- nil
		}()
		select {
		case err := <-grown:
			return err
		case <-time.After(time.Minute):
			return errors.New("the writer waits for a reader")
		}
	})
	if info, err := os.Stat(db.Path()); err != nil || info.Size() < 20<<20 {
		t.Errorf("the file has not grown beyond 20 MiB: %v, %v", info.Size(), err)
	}
}
