package kv

import (
	"testing"

	"molrun/app/test/must"
)

// recovered returns the value that call panics with.
func recovered(call func()) (v any) {
	defer func() { v = recover() }()
	call()
	return nil
}

func TestPanicInAViewEndsOnlyThatView(t *testing.T) {
	db := openNew(t)
	if v := recovered(func() { _ = db.View(t.Context(), func(*Tx) error { panic(errMine) }) }); v != errMine {
		t.Errorf("recovered %v, want the value of the panic", v)
	}
	put(t, db, 1)
	must.Equal(t, "open read transactions", db.file.Stats().OpenTxN, 0)
}

func TestUseOfTxAfterItsClosurePanics(t *testing.T) {
	db := openNew(t)
	var kept *Tx
	view(t, db, func(tx *Tx) error { kept = tx; return nil })
	if recovered(func() { _, _ = readThing(kept, testID(1)) }) == nil {
		t.Error("a Tx was usable after its closure")
	}
}
