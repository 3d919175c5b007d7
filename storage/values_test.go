package storage

import (
	"testing"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/sortid"
	"molrun/storage/kv"
)

func TestCutValuesOfIndexesAreRefused(t *testing.T) {
	key := kv.Key{}.ID(sortid.ID{1})
	claimed := []byte{0x83, 0x01, 1} // attempt 131, to be stopped
	if c, err := readClaimed(key, claimed); err != nil || c.Attempt != 131 || !c.Stop {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, bad := range [][]byte{nil, claimed[:1], claimed[:2], {0x83, 0x01, 2}, {0x83, 0x01, 0x83}} {
		if c, err := readClaimed(key, bad); err == nil {
			t.Errorf("% x reads as %+v", bad, c)
		}
	}
	if _, err := readClaimed(key[:3], claimed); err == nil {
		t.Error("a cut key is accepted")
	}
	needs := appendResources(nil, placement.Resources{CPUs: 100, MemoryBytes: 1 << 40, GPUs: 3})
	for n := range needs {
		if r, _, err := readResources(needs[:n]); err == nil {
			t.Errorf("% x reads as %+v", needs[:n], r)
		}
	}
}

func TestMalformedIDsAreNotStored(t *testing.T) {
	s := openNew(t)
	for name, put := range map[string]func(app.Tx) error{
		"upload": func(tx app.Tx) error { return tx.PutUpload(&app.Upload{ID: "x", Organization: "lab"}) },
		"job":    func(tx app.Tx) error { return tx.PutJob(&app.Job{ID: "x", Organization: "lab", Status: app.Queued}) },
	} {
		if err := s.Update(t.Context(), put); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, get := range map[string]func(app.Tx) error{
		"upload":        func(tx app.Tx) error { _, err := tx.Upload("x"); return err },
		"job":           func(tx app.Tx) error { _, err := tx.Job("x"); return err },
		"JSON of a job": func(tx app.Tx) error { _, err := tx.JobJSON("x"); return err },
		"key":           func(tx app.Tx) error { _, err := tx.Key("x"); return err },
		"delete a job":  func(tx app.Tx) error { return tx.DeleteJob("x") },
		"delete upload": func(tx app.Tx) error { return tx.DeleteUpload("x") },
	} {
		if err := s.View(t.Context(), get); err == nil {
			t.Errorf("%s: it is found", name)
		}
	}
}
