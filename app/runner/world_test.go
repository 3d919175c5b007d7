package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/apikey"
	"molrun/app/placement"
	"molrun/app/routing"
	"molrun/app/strictjson"
	"molrun/blobs"
	"molrun/blobs/link"
	"molrun/storage"
)

// simFile is the algorithm of the tests; how its tasks go is up to scripts.
const simFile = `
format = 1
type = "sim"
version = "1"
title = "Pretend"
retries = 1
resumable = true
max_runtime = "1h"
command = ["sh", "-c", "exit 0", "{settings_file}", "{out}"]

[[parameters]]
name = "cpus"
type = "integer"
minimum = 1
default = 1

[[parameters]]
name = "gpus"
type = "integer"
minimum = 0
default = 0

[[parameters]]
name = "sequence"
file = [".fasta", ".fa.gz"]

[resources]
cpus = "{settings.cpus}"
gpus = "{settings.gpus}"
memory = "1MiB"

[[failures]]
pattern = 'Cannot read (\S+)'
message = "The program could not read $1."
`

var (
	ann   = app.Caller{Organization: "lab", Email: "ann@lab.example", Role: apikey.Member}
	bob   = app.Caller{Organization: "lab", Email: "bob@lab.example", Role: apikey.Member}
	chief = app.Caller{Organization: "lab", Email: "chief@lab.example", Role: apikey.Admin}
)

// world is a service on a real store and real files with one executor. It
// lives in a bubble: its clock jumps when everybody waits.
type world struct {
	*app.Service
	t        testing.TB
	dir      string
	store    *storage.Store
	files    *blobs.Dir
	executor *scripted
	place    app.Executor // executor, or what stands in front of it
	options  Options
	jobs     Jobs // what runners use; the service unless a test puts something in between
}

// bubble runs a test with a world of its own.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir := scratch(t)
	w := &world{t: t, dir: dir, executor: &scripted{
		t: t, name: "local", bounded: true,
		capacity: app.Capacity{CPUs: 4, MemoryBytes: gib, GPUs: []string{"GPU-a", "GPU-b"}},
		tasks:    map[string]*scriptedTask{},
		play:     func(app.Task) script { return script{runs: time.Minute, cause: app.CauseDone} },
	}}
	secret, err := link.LoadSecret(dir)
	must(t, err)
	w.files, err = blobs.Open(dir, blobs.Options{Now: time.Now, Secret: secret, Log: zerolog.Nop()})
	must(t, err)
	w.store, err = storage.Open(filepath.Join(dir, "jobs.db"), storage.Options{Fatal: func(err error) { t.Error(err) }})
	must(t, err)
	t.Cleanup(func() {
		must(t, w.store.Check(context.Background()))
		must(t, w.store.Close())
		must(t, w.files.Close())
	})
	w.place = w.executor
	w.Service = w.service(simFile)
	w.jobs = w.Service.Runs
	w.options = Options{Now: time.Now, Log: zerolog.Nop(), Program: "/bin/molrun", KeepFailed: 72 * time.Hour, KeptDir: filepath.Join(dir, "failed")}
	return w
}

// scratch gives a directory in memory, where the machine has such: what is
// tested here is what happens in which order, not how long a disk takes.
func scratch(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "runner-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

func (w *world) service(definitions ...string) *app.Service {
	w.t.Helper()
	var all []*algorithm.File
	for _, text := range definitions {
		a, mistakes := algorithm.Parse("test.toml", []byte(text))
		for _, m := range mistakes {
			w.t.Fatal(m)
		}
		all = append(all, a)
	}
	catalogue, err := algorithm.NewCatalogue(all)
	must(w.t, err)
	s, err := app.NewService(w.store, w.files, catalogue, app.Options{
		Now: time.Now, CursorKey: make([]byte, 32), UploadTTL: time.Hour,
		Routing: routing.Table{Executor: "local", Machines: map[string]placement.Machine{"local": {CPUs: 4, MemoryBytes: gib, GPUs: 2, Local: true}}},
	})
	must(w.t, err)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a runner and gives what ends it.
func (w *world) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	r := New(w.jobs, w.files, []app.Executor{w.place}, w.options)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	}
	w.t.Cleanup(stop)
	return stop
}

// submit queues a job of the caller and gives its ID.
func (w *world) submit(by app.Caller, name, settings string) app.JobID {
	w.t.Helper()
	return w.submitWith(by, name, settings, 0)
}

func (w *world) submitWith(by app.Caller, name, settings string, priority int) app.JobID {
	w.t.Helper()
	body, err := strictjson.Parse([]byte(fmt.Sprintf(`{"jobName":%q,"type":"sim","settings":%s,"priority":%d}`, name, settings, priority)))
	must(w.t, err)
	rec, _, err := w.Jobs.Submit(w.t.Context(), by, app.Submission{
		Name: name, Type: "sim", Settings: body.Member("settings"), Priority: priority, Body: body,
	})
	must(w.t, err)
	return w.read(rec).ID
}

// upload stores a file as a user would.
func (w *world) upload(by app.Caller, filename, text string) *app.Upload {
	w.t.Helper()
	ctx := w.t.Context()
	grant, err := w.Files.Create(ctx, by, app.UploadRequest{Filename: filename, Base: "http://127.0.0.1"})
	must(w.t, err)
	id := grant.Upload.ID
	generation, _, err := w.Files.BeginUpload(ctx, id, -1)
	must(w.t, err)
	path := w.files.UploadPath(id, generation)
	must(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(w.t, os.WriteFile(path, []byte(text), 0o600))
	sum := sha256.Sum256([]byte(text))
	_, err = w.Files.FinishUpload(ctx, id, app.StoredFile{Generation: generation, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])})
	must(w.t, err)
	u, err := w.Files.Complete(ctx, by, string(id), nil)
	must(w.t, err)
	return u
}

// record is what clients see of a job.
type record struct {
	app.Job
	Progress *app.Progress `json:"progress"`
}

func (w *world) read(rec app.Record) record {
	w.t.Helper()
	var r record
	must(w.t, json.Unmarshal(rec, &r))
	return r
}

func (w *world) job(name string) record {
	w.t.Helper()
	rec, err := w.Jobs.Get(w.t.Context(), chief, name, 0)
	must(w.t, err)
	return w.read(rec)
}

// until waits for the job to be in one of the states. A change between two
// requests is no change to the second of them, so the first ones are short.
func (w *world) until(name string, states ...app.Status) record {
	w.t.Helper()
	wait := time.Millisecond
	for range 24 * 60 * 3 { // three days
		rec, err := w.Jobs.Get(w.t.Context(), chief, name, wait)
		must(w.t, err)
		r := w.read(rec)
		for _, s := range states {
			if r.Status == s {
				return r
			}
		}
		wait = min(2*wait, time.Minute)
	}
	w.t.Fatalf("job %s did not come to be one of %v: %+v", name, states, w.job(name))
	return record{}
}

func (w *world) finished(name string) record {
	w.t.Helper()
	return w.until(name, app.Completed, app.Failed)
}

// path gives a path in the job's directory.
func (w *world) path(id app.JobID, parts ...string) string {
	return filepath.Join(append([]string{w.files.JobDir(id)}, parts...)...)
}

func (w *world) text(path string) string {
	w.t.Helper()
	data, err := os.ReadFile(path)
	must(w.t, err)
	return string(data)
}

// checkResult fails unless the job's files are as its manifest says, and gives
// their content by name.
func (w *world) checkResult(id app.JobID) map[string]string {
	w.t.Helper()
	m, err := w.files.Manifest(id)
	must(w.t, err)
	return readResult(w.t, w.files.JobDir(id), m)
}

// readResult checks a manifest against the files and gives their content.
func readResult(t testing.TB, dir string, m *app.Manifest) map[string]string {
	t.Helper()
	content := map[string]string{}
	for i, f := range m.Files {
		data, err := os.ReadFile(filepath.Join(dir, f.Path))
		must(t, err)
		sum := sha256.Sum256(data)
		if f.Size != int64(len(data)) || f.SHA256 != hex.EncodeToString(sum[:]) || f.CRC32 != crc(data) {
			t.Errorf("%s: the manifest says %+v, the file has %d bytes", f.Name, f, len(data))
		}
		if i > 0 && strings.Compare(m.Files[i-1].Name, f.Name) >= 0 {
			t.Errorf("%q stands behind %q", f.Name, m.Files[i-1].Name)
		}
		content[f.Name] = string(data)
	}
	return content
}

// play gives every task the script of its job's name and attempt.
func (w *world) play(play func(name string, attempt int) script) {
	names := map[app.JobID]string{}
	w.executor.play = func(t app.Task) script {
		if names[t.Job] == "" {
			must(w.t, w.store.View(context.Background(), func(tx app.Tx) error {
				j, err := tx.Job(t.Job)
				if err == nil {
					names[t.Job] = j.Name
				}
				return err
			}))
		}
		return play(names[t.Job], t.Attempt)
	}
}
