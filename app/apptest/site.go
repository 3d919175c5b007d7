// Package apptest runs the use cases of package app on real records and files in a
// temporary data directory, with a clock of its own. The tests of packages that work
// on a data directory fill one with it, without HTTP and processes.
package apptest

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/apikey"
	"molrun/app/placement"
	"molrun/app/upload"
	"molrun/blobs"
	"molrun/blobs/link"
	"molrun/storage"
)

// Callers of two organizations.
var (
	Ann = app.Caller{Organization: "lab", Email: "ann@lab.example", Rights: apikey.Member.Rights()}
	Bob = app.Caller{Organization: "lab", Email: "bob@lab.example", Rights: apikey.Member.Rights()}
	Eve = app.Caller{Organization: "other", Email: "ann@lab.example", Rights: apikey.Admin.Rights()}
)

// Day is a unit of retention.
const Day = 24 * time.Hour

// echoFile is an algorithm with a setting that may be a file.
const echoFile = `
format = 1
type = "echo"
version = "1"
title = "Print the settings"
retries = 1
command = ["sh", "-c", "cat"]

[[parameters]]
name = "steps"
type = "integer"
default = 10

[[parameters]]
name = "input"
file = [".txt"]
`

// Site is a data directory and the use cases on it. Nothing runs its jobs: tests say
// how they end.
type Site struct {
	*app.Service
	Files *upload.Files
	Data  string // the directory
	Store *storage.Store
	Blobs *blobs.Dir

	t       testing.TB
	options app.Options
	mu      sync.Mutex
	time    time.Time
	open    bool
}

// New returns a site that offers the algorithm echo, on a machine of 4 CPUs and
// 8 GiB. The records are checked when the test ends, or at Close.
func New(t testing.TB, o app.Options) *Site {
	t.Helper()
	s := &Site{t: t, Data: t.TempDir(), time: time.Date(2026, 11, 20, 10, 40, 0, 0, time.UTC), open: true}
	secret, err := link.LoadSecret(s.Data)
	must(t, err)
	s.Blobs, err = blobs.Open(s.Data, blobs.Options{Now: s.Now, Secret: secret, Log: zerolog.Nop()})
	must(t, err)
	s.Store, err = storage.Open(filepath.Join(s.Data, "jobs.db"), storage.Options{Fatal: func(err error) { t.Error(err) }, AnyFileSystem: true})
	must(t, err)
	t.Cleanup(s.Close)
	s.Files = upload.New(s.Store, s.Blobs, upload.Options{Now: s.Now, LinkTTL: time.Hour, Quota: o.Quota})
	o.Now = s.Now
	o.Routing.Executor = "local"
	o.Routing.Machines = map[string]placement.Machine{"local": {CPUs: 4, MemoryBytes: 8 << 30, Local: true}}
	s.options = o
	s.Service = s.On(s.Store)
	return s
}

// On returns the use cases on the same files and another view of the store.
func (s *Site) On(store app.Store) *app.Service {
	s.t.Helper()
	service, err := app.NewService(store, s.Blobs, echo(s.t), s.options)
	must(s.t, err)
	return service
}

func echo(t testing.TB) *algorithm.Catalogue {
	t.Helper()
	a, mistakes := algorithm.Parse("echo.toml", []byte(echoFile))
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	c, err := algorithm.NewCatalogue([]*algorithm.File{a})
	must(t, err)
	return c
}

// Close checks the records and releases the data directory, for a test that goes on
// with what others do to it.
func (s *Site) Close() {
	s.t.Helper()
	if !s.open {
		return
	}
	s.open = false
	if err := s.Store.Check(context.Background()); err != nil {
		s.t.Errorf("check of the store: %v", err)
	}
	must(s.t, s.Store.Close())
	must(s.t, s.Blobs.Close())
}

// Now advances the clock by a millisecond, so that no two events coincide.
func (s *Site) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time = s.time.Add(time.Millisecond)
	return s.time
}

// Advance lets time pass.
func (s *Site) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time = s.time.Add(d)
}

// Path returns the path of a name in the data directory.
func (s *Site) Path(names ...string) string {
	return filepath.Join(append([]string{s.Data}, names...)...)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
