package kv

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestCheckFindsDamagedPages(t *testing.T) {
	db := openAt(t, newPath(t), Options{})
	put(t, db, upTo(300)...)
	zeroRoot(t, db, indexKind)
	if err := db.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "Page") {
		t.Errorf("error %v, want it to name the zeroed page", err)
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	db := openNew(t)
	put(t, db, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestRepairAndCompactRefuseDamagedPages(t *testing.T) {
	path := newPath(t)
	db := openAt(t, path, Options{})
	put(t, db, upTo(300)...)
	zeroRoot(t, db, indexKind)
	must.OK(t, db.Close())
	before, err := os.ReadFile(path)
	must.OK(t, err)

	_, repairErr := Repair(t.Context(), path, schemaWith(), Options{})
	_, compactErr := Compact(t.Context(), path, schemaWith(), Options{})
	for _, err := range []error{repairErr, compactErr} {
		if err == nil || !strings.Contains(err.Error(), "restore a backup") {
			t.Errorf("error %v, want it to ask for a backup", err)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the damaged database was changed: %v", err)
	}
}
