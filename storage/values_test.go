package storage

import (
	"encoding/json"
	"strings"
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

func TestBadRecordsAreRefused(t *testing.T) {
	s := openNew(t)
	job := func(spoil func(*app.Job)) func(app.Tx) error {
		return func(tx app.Tx) error {
			j := testJob(1)
			spoil(j)
			return tx.PutJob(j)
		}
	}
	for name, bad := range map[string]func(app.Tx) error{
		"job without ID":         job(func(j *app.Job) { j.ID = "" }),
		"job with malformed ID":  job(func(j *app.Job) { j.ID = "x" }),
		"job without status":     job(func(j *app.Job) { j.Status = "" }),
		"invalid batch":          job(func(j *app.Job) { j.Private.Batch = "screen" }),
		"empty reference":        job(func(j *app.Job) { j.Private.References = []app.Reference{{Setting: "fasta"}} }),
		"bad settings":           job(func(j *app.Job) { j.Settings = json.RawMessage("{") }),
		"too long a name":        job(func(j *app.Job) { j.Name = strings.Repeat("a", 70000) }),
		"upload":                 func(tx app.Tx) error { return tx.PutUpload(&app.Upload{ID: "x", Organization: "lab"}) },
		"reading an upload":      func(tx app.Tx) error { _, err := tx.Upload("x"); return err },
		"reading a job":          func(tx app.Tx) error { _, err := tx.Job("x"); return err },
		"reading JSON of a job":  func(tx app.Tx) error { _, err := tx.JobJSON("x"); return err },
		"reading a key":          func(tx app.Tx) error { _, err := tx.Key("x"); return err },
		"deletion of a job":      func(tx app.Tx) error { return tx.DeleteJob("x") },
		"deletion of an upload":  func(tx app.Tx) error { return tx.DeleteUpload("x") },
		"waiting for what is no": job(func(j *app.Job) { j.Private.Waits = []app.Dependency{{Job: "x"}} }),
	} {
		if err := s.Update(t.Context(), bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
