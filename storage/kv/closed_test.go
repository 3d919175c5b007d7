package kv

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"molrun/app/test/must"

	bolt "go.etcd.io/bbolt"
)

func TestRepairAndCompactRefuseANewerVersion(t *testing.T) {
	path := withThings(t, 3)
	step := func(*bolt.Tx) error { return nil }
	newer := openAt(t, path, Options{}, step)
	must.OK(t, newer.Close())
	_, repairErr := Repair(t.Context(), path, schemaWith(), Options{})
	_, compactErr := Compact(t.Context(), path, schemaWith(), Options{})
	for what, err := range map[string]error{"repair": repairErr, "compact": compactErr} {
		if err == nil || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("%s: error %v, want that the version is newer", what, err)
		}
	}
}

func TestRepairAndCompactEndWithTheirContext(t *testing.T) {
	path := withThings(t, 3)
	before, err := os.ReadFile(path)
	must.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, repairErr := Repair(ctx, path, schemaWith(), Options{})
	_, compactErr := Compact(ctx, path, schemaWith(), Options{})
	for what, err := range map[string]error{"repair": repairErr, "compact": compactErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want context.Canceled", what, err)
		}
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the database was changed: %v", err)
	}
}
