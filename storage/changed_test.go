package storage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/job/apikey"
	"molrun/app/test/must"
)

// sha256Hex returns the key under which an algorithm file is stored.
func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// place is the position of one byte of a stored value.
type place struct {
	bucket, key string
	at          int
}

// places returns the positions of all bytes of all records of a closed database.
func places(t *testing.T, path string) (all []place) {
	t.Helper()
	edit(t, path, func(tx *bolt.Tx) error {
		for _, bucket := range []string{bucketJobs, bucketJobsPrivate, bucketUploads, bucketKeys, bucketDefinitions} {
			err := bucketOf(tx, bucket).ForEach(func(k, v []byte) error {
				for at := range v {
					all = append(all, place{bucket, string(k), at})
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return all
}

// flip inverts a bit; a second call restores it.
func (p place) flip(t *testing.T, path string) {
	t.Helper()
	edit(t, path, func(tx *bolt.Tx) error {
		value := bytes.Clone(bucketOf(tx, p.bucket).Get([]byte(p.key)))
		value[p.at] ^= 1 << (p.at % 8)
		return bucketOf(tx, p.bucket).Put([]byte(p.key), value)
	})
}

// problems returns what a check of a closed database reports.
func problems(t *testing.T, path string) string {
	t.Helper()
	r, err := OpenReadOnly(path)
	must.OK(t, err)
	defer r.Close()
	report, err := r.Check(t.Context())
	must.OK(t, err)
	return textOf(report.Err())
}

func TestCheckFindsAChangedBitAnywhereInARecord(t *testing.T) {
	const text = "format = 1\n"
	path := newPath(t)
	s := openAt(t, path, Options{})
	putSample(t, s)
	update(t, s, func(tx app.Tx) error {
		if err := tx.PutKey(&apikey.Key{ID: "k", Organization: "lab", Email: "ann@lab.example", Role: apikey.Member}); err != nil {
			return err
		}
		return tx.PutDefinition(sha256Hex(text), []byte(text))
	})
	must.OK(t, s.Close())
	if found := problems(t, path); found != "" {
		t.Fatal(found)
	}
	all := places(t, path)
	for i := 0; i < len(all); i += 5 {
		all[i].flip(t, path)
		if problems(t, path) == "" {
			t.Errorf("nothing is found of a changed bit in %+v", all[i])
		}
		all[i].flip(t, path)
	}
	t.Logf("%d bytes of records", len(all))
}

func TestRepairNeverMakesADamagedRecordLookSound(t *testing.T) {
	path := damaged(t, func(tx *bolt.Tx) error {
		if err := bucketOf(tx, indexJobsList).Delete(firstKey(tx, indexJobsList)); err != nil {
			return err
		}
		return editRecord(tx, 1, "ann@", "anm@")
	})
	report, err := Repair(t.Context(), path, Options{})
	must.OK(t, err)
	if report.Count != 1 || !strings.Contains(report.Problems[0].Text, "checksum mismatch in "+jobIDText(1)) {
		t.Errorf("after the repair: %+v", report)
	}
}
