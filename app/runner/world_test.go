package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/base/strictjson"
	"molrun/app/job/apikey"
	"molrun/app/job/eta"
	"molrun/app/job/upload"
	"molrun/app/runner/result"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
	"molrun/blobs"
	"molrun/blobs/link"
	"molrun/storage"
)

const gib = 1 << 30

// simFile is the algorithm of the tests. Scripts determine how its tasks run.
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
name = "steps"
type = "integer"
minimum = 0

[estimate]
size = "settings.steps"

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

[[failures]]
pattern = 'No more columns'
message = "The alignment is too large."
lacks = "memory"
`

var (
	ann   = app.Caller{Organization: "lab", Email: "ann@lab.example", Rights: apikey.Member.Rights()}
	bob   = app.Caller{Organization: "lab", Email: "bob@lab.example", Rights: apikey.Member.Rights()}
	chief = app.Caller{Organization: "lab", Email: "chief@lab.example", Rights: apikey.Admin.Rights()}
)

// world is a service on a real store and real files with one executor. Its clock is the
// clock of the test's bubble, which jumps ahead when every goroutine waits.
type world struct {
	*app.Service
	t        testing.TB
	dir      string
	store    *storage.Store
	files    *blobs.Dir
	executor *scripted
	front    app.Executor // executor, or a wrapper around it
	options  Options
	jobs     Jobs // service used by runners; a test can wrap it
}

// bubble runs a test with its own world in a synctest bubble.
func bubble(t *testing.T, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir := scratch(t)
	w := &world{t: t, dir: dir, executor: &scripted{
		t: t, name: "local", bounded: true,
		capacity: app.Capacity{CPUs: 4, MemoryBytes: gib, GPUs: []string{"GPU-a", "GPU-b"}, Cores: [][]int{{0, 4}, {1, 5}}},
		tasks:    map[string]*scriptedTask{},
		play:     func(app.Task) script { return script{runs: time.Minute, cause: app.CauseDone} },
	}}
	secret, err := link.LoadSecret(dir)
	must.OK(t, err)
	w.files, err = blobs.Open(dir, blobs.Options{Now: time.Now, Secret: secret, Log: zerolog.Nop()})
	must.OK(t, err)
	w.store, err = storage.Open(filepath.Join(dir, "jobs.db"), storage.Options{Fatal: func(err error) { t.Error(err) }})
	must.OK(t, err)
	t.Cleanup(func() {
		must.OK(t, w.store.Check(context.Background()))
		must.OK(t, w.store.Close())
		must.OK(t, w.files.Close())
	})
	w.front = w.executor
	w.Service = w.service(simFile)
	w.jobs = w.Service.Runs
	w.options = Options{Now: time.Now, Log: zerolog.Nop(), Program: "/bin/molrun", KeepFailed: 72 * time.Hour, RetainedDir: filepath.Join(dir, "failed")}
	return w
}

// scratch returns an in-memory directory if the machine has one: the tests check the
// order of events, not the speed of a disk.
func scratch(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "runner-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must.OK(t, os.RemoveAll(dir)) })
	return dir
}

// catalogue returns a catalogue with one algorithm.
func (w *world) catalogue(definition string) *algorithm.Catalogue {
	w.t.Helper()
	a, mistakes := algorithm.Parse("test.toml", []byte(definition))
	for _, m := range mistakes {
		w.t.Fatal(m)
	}
	c, err := algorithm.NewCatalogue([]*algorithm.File{a})
	must.OK(w.t, err)
	return c
}

func (w *world) service(definition string) *app.Service {
	w.t.Helper()
	return w.serviceWith(definition, nil)
}

// serviceWith is like service, for a machine whose number of GPUs can change, unless gpus
// is nil.
func (w *world) serviceWith(definition string, gpus func() int) *app.Service {
	w.t.Helper()
	s, err := app.NewService(w.store, w.files, w.catalogue(definition), app.Options{
		Now:     time.Now,
		Quota:   w.options.Quota,
		Routing: routing.Table{Executor: "local", Machines: map[string]placement.Machine{"local": {CPUs: 4, MemoryBytes: gib, GPUs: 2, CountGPUs: gpus, Local: true}}},
	})
	must.OK(w.t, err)
	return s
}

func isDir(path string) bool { return result.IsDir(path) }

// start starts a runner and returns a function that stops it.
func (w *world) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	r := New(w.jobs, w.files, []app.Executor{w.front}, w.options)
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

// submit queues a job of the caller and returns its ID.
func (w *world) submit(by app.Caller, name, settings string) app.JobID {
	w.t.Helper()
	body, err := strictjson.Parse(fmt.Appendf(nil, `{"jobName":%q,"type":"sim","settings":%s}`, name, settings))
	must.OK(w.t, err)
	rec, _, err := w.Jobs.Submit(w.t.Context(), by, app.Submission{Name: name, Type: "sim", Settings: body.Member("settings"), Body: body})
	must.OK(w.t, err)
	return w.read(rec).ID
}

// upload stores a file as a user would.
func (w *world) upload(by app.Caller, filename, text string) *app.Upload {
	w.t.Helper()
	ctx := w.t.Context()
	files := upload.New(w.store, w.files, upload.Options{Now: time.Now, LinkTTL: time.Hour})
	grant, err := files.Create(ctx, by, upload.Request{Filename: filename, Base: "http://127.0.0.1"})
	must.OK(w.t, err)
	id := grant.Upload.ID
	generation, _, err := files.BeginUpload(ctx, id, -1)
	must.OK(w.t, err)
	path := w.files.UploadPath(id, generation)
	must.OK(w.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.OK(w.t, os.WriteFile(path, []byte(text), 0o600))
	sum := sha256.Sum256([]byte(text))
	_, err = files.FinishUpload(ctx, id, app.StoredFile{Generation: generation, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])})
	must.OK(w.t, err)
	u, err := files.Complete(ctx, by, string(id), nil)
	must.OK(w.t, err)
	return u
}

// record is a job as clients see it.
type record struct {
	app.Job
	Progress *app.Progress `json:"progress"`
	Queue    eta.Queue     `json:"queue"`
	Left     *int64        `json:"etaSeconds"`
	Basis    string        `json:"etaBasis"`
}

func (w *world) read(rec app.Record) record {
	w.t.Helper()
	var r record
	must.OK(w.t, json.Unmarshal(rec, &r))
	return r
}

func (w *world) job(name string) record {
	w.t.Helper()
	rec, err := w.Jobs.Get(w.t.Context(), chief, name, 0)
	must.OK(w.t, err)
	return w.read(rec)
}

// until waits until the job has one of the statuses. A request does not detect a change
// that happened before it, so the first ones are short.
func (w *world) until(name string, states ...app.Status) record {
	w.t.Helper()
	wait := time.Millisecond
	for range 24 * 60 * 3 { // three days
		rec, err := w.Jobs.Get(w.t.Context(), chief, name, wait)
		must.OK(w.t, err)
		r := w.read(rec)
		if slices.Contains(states, r.Status) {
			return r
		}
		wait = min(2*wait, time.Minute)
	}
	w.t.Fatalf("job %s did not become any of %v: %+v", name, states, w.job(name))
	return record{}
}

func (w *world) finished(name string) record {
	w.t.Helper()
	return w.until(name, app.Completed, app.Failed)
}

// path returns a path in the job's directory.
func (w *world) path(id app.JobID, parts ...string) string {
	return filepath.Join(append([]string{w.files.JobDir(id)}, parts...)...)
}

func (w *world) text(path string) string {
	w.t.Helper()
	return must.Read(w.t, path)
}

// checkResult fails unless the job's files match its manifest, and returns their content
// by name.
func (w *world) checkResult(id app.JobID) map[string]string {
	w.t.Helper()
	m, err := w.files.Manifest(id)
	must.OK(w.t, err)
	return fixture.ReadResult(w.t, w.files.JobDir(id), m)
}

// play assigns scripts to tasks by job name and attempt.
func (w *world) play(play func(name string, attempt int) script) {
	names := map[app.JobID]string{}
	w.executor.play = func(t app.Task) script {
		if names[t.Job] == "" {
			must.OK(w.t, w.store.View(context.Background(), func(tx app.Tx) error {
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
