package storage

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	bolt "go.etcd.io/bbolt"

	"molrun/app"
	"molrun/app/test/must"
	"molrun/storage/kv/boltfile"
)

// Each damaged database of the corpus is an intact one of corpusJobs jobs with a single
// defect. Either opening it fails and leaves the file unchanged, or all records are
// present, or the damage is reported: by a warning on open, by the store on encountering
// it, or by a check. No record may disappear silently.
const corpusJobs = 40

const page = 4096

// sound returns an intact database and its companion files by suffix, its jobs, and the
// number of pages in use. It truncates the free space at the end, which would take most
// of the time to write.
func sound(t *testing.T) (files map[string][]byte, jobs map[app.JobID]string, pages int) {
	t.Helper()
	path := newPath(t)
	s := openAt(t, path, Options{})
	putJobs(t, s, testJobs(corpusJobs-1)...)
	putJobs(t, s, testJob(corpusJobs-1))
	must.OK(t, s.Close())
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	must.OK(t, err)
	must.OK(t, db.View(func(tx *bolt.Tx) error { pages = int(tx.Size() / page); return nil }))
	must.OK(t, db.Close())
	must.OK(t, os.Truncate(path, int64(pages)*page))
	jobs = readAll(t, path)
	if len(jobs) != corpusJobs {
		t.Fatalf("%d jobs, want %d", len(jobs), corpusJobs)
	}
	files = map[string][]byte{}
	for _, suffix := range []string{"", boltfile.MarkerSuffix, ".commits"} {
		data, err := os.ReadFile(path + suffix)
		must.OK(t, err)
		files[suffix] = data
	}
	return files, jobs, pages
}

func readAll(t *testing.T, path string) map[app.JobID]string {
	t.Helper()
	r, err := OpenReadOnly(path)
	must.OK(t, err)
	defer r.Close()
	jobs := map[app.JobID]string{}
	for j, err := range r.Jobs(t.Context()) {
		must.OK(t, err)
		text, err := j.Encode()
		must.OK(t, err)
		jobs[j.ID] = string(text)
	}
	return jobs
}

// Outcomes of opening a damaged database.
const (
	refusedAtStart = "rejected on open"
	warnedAtStart  = "warned at the start"
	metByStore     = "encountered by the store"
	foundByCheck   = "found by check"
	unharmed       = "unharmed"
	silent         = "lost or altered silently"
)

// verdict opens a database and returns the outcome.
func verdict(t *testing.T, path string, want map[app.JobID]string) string {
	t.Helper()
	before, _ := os.ReadFile(path)
	said := ""
	s, err := Open(path, Options{
		Warn:  func(string) { said = warnedAtStart },
		Fatal: func(error) { said = metByStore },
	})
	if err != nil {
		if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
			t.Errorf("the refused file was changed")
		}
		return refusedAtStart
	}
	defer func() { _ = s.Close() }() // Close can fail on a damaged file
	have, readErr := recordsOf(s)
	switch {
	case said != "":
		return said
	case readErr != nil:
		return foundByCheck // because reading failed
	}
	_ = s.Close()
	if r, err := OpenReadOnly(path); err != nil {
		return foundByCheck
	} else {
		defer r.Close()
		if report, err := r.Check(t.Context()); err != nil || report.Count > 0 {
			return foundByCheck
		}
	}
	return compare(have, want)
}

func compare(have, want map[app.JobID]string) string {
	if maps.Equal(have, want) {
		return unharmed
	}
	return silent
}

// recordsOf reads all jobs as a listing does.
func recordsOf(s *Store) (have map[app.JobID]string, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	have = map[app.JobID]string{}
	err = s.View(context.Background(), func(tx app.Tx) error {
		page, err := tx.Jobs(app.JobFilter{Organization: "lab"}, "", 2*corpusJobs)
		for _, j := range page.Jobs {
			have[j.ID] = string(j.JSON)
		}
		return err
	})
	return have, err
}

// damage is one way to corrupt a database file.
type damage struct {
	name  string
	spoil func(path string, data []byte) error
}

func rewritten(change func(data []byte) []byte) func(string, []byte) error {
	return func(path string, data []byte) error { return os.WriteFile(path, change(bytes.Clone(data)), 0o600) }
}

// corpus returns the ways to damage a file with this many pages.
func corpus(pages int) []damage {
	all := []damage{
		{"nothing", rewritten(func(d []byte) []byte { return d })},
		{"missing", func(path string, _ []byte) error { return os.Remove(path) }},
		{"a directory in its place", func(path string, _ []byte) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		}},
		{"a link to nowhere", func(path string, _ []byte) error {
			return errors.Join(os.Remove(path), os.Symlink(path+".gone", path))
		}},
		{"unreadable", func(path string, _ []byte) error { return os.Chmod(path, 0) }},
		{"text", rewritten(func(d []byte) []byte { return bytes.Repeat([]byte("no database\n"), len(d)/12) })},
		{"random bytes", rewritten(func(d []byte) []byte {
			for i, x := 0, uint64(88172645463325252); i+8 <= len(d); i += 8 {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
				binary.LittleEndian.PutUint64(d[i:], x)
			}
			return d
		})},
		{"shifted by a byte", rewritten(func(d []byte) []byte { return append([]byte{0}, d...) })},
		{"doubled", rewritten(func(d []byte) []byte { return append(d, d...) })},
		{"pages swapped", rewritten(func(d []byte) []byte {
			swap := bytes.Clone(d[5*page : 6*page])
			copy(d[5*page:], d[6*page:7*page])
			copy(d[6*page:], swap)
			return d
		})},
		{"both meta pages with a flipped bit", rewritten(func(d []byte) []byte { d[40] ^= 1; d[page+40] ^= 1; return d })},
		{"another program's meta version", rewritten(func(d []byte) []byte { d[20]++; d[page+20]++; return d })},
	}
	for _, size := range []int{0, 1, 100, page, 2 * page, 3 * page, 4*page + 17, pages / 2 * page} {
		all = append(all, damage{fmt.Sprintf("cut to %d bytes", size), rewritten(func(d []byte) []byte { return d[:size] })})
	}
	for n := range pages {
		at := n * page
		all = append(all,
			damage{fmt.Sprintf("page %d zeroed", n), rewritten(func(d []byte) []byte { clear(d[at : at+page]); return d })},
			damage{fmt.Sprintf("page %d of ones", n), rewritten(func(d []byte) []byte {
				copy(d[at:], bytes.Repeat([]byte{0xFF}, page))
				return d
			})},
			damage{fmt.Sprintf("page %d with a flipped bit in its head", n), rewritten(func(d []byte) []byte { d[at+8] ^= 2; return d })},
			damage{fmt.Sprintf("page %d with another count", n), rewritten(func(d []byte) []byte { d[at+10] ^= 5; return d })},
			damage{fmt.Sprintf("page %d with a flipped bit further on", n), rewritten(func(d []byte) []byte { d[at+40] ^= 1; return d })},
			damage{fmt.Sprintf("page %d with a flipped bit at its end", n), rewritten(func(d []byte) []byte { d[at+page-100] ^= 1; return d })},
		)
	}
	return all
}

func TestDamagedDatabaseNeverLosesRecordsSilently(t *testing.T) {
	if checked {
		t.Skip("run without the race detector")
	}
	files, want, pages := sound(t)
	tally := map[string]int{}
	all := corpus(pages)
	path := newPath(t)
	for _, d := range all {
		must.OK(t, os.RemoveAll(filepath.Dir(path)))
		must.OK(t, os.Mkdir(filepath.Dir(path), 0o700))
		for suffix, data := range files {
			must.OK(t, os.WriteFile(path+suffix, data, 0o600))
		}
		must.OK(t, d.spoil(path, files[""]))
		got := verdict(t, path, want)
		tally[got]++
		if got == silent || d.name == "nothing" && got != unharmed {
			t.Errorf("%s: %s", d.name, got)
		}
	}
	t.Logf("%d cases: %v", len(all), tally)
	if len(all) < 200 || tally[refusedAtStart] < 15 {
		t.Errorf("only %d cases, %d refused: the corpus has shrunk", len(all), tally[refusedAtStart])
	}
}
