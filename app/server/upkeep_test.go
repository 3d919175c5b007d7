package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
	"molrun/app/client"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/server/config"
	"molrun/app/server/snapshot"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

var anybody = app.Caller{Organization: "lab", Email: "ann@lab.example", Rights: apikey.Admin.Rights()}

// usedConfig returns the configuration of a data directory with an old upload and an old
// job, and their paths.
func usedConfig(t *testing.T) (c config.Config, upload, job string) {
	t.Helper()
	site := fixture.New(t, app.Options{})
	u := site.Upload(fixture.Ann, "a.txt", "text")
	id := site.Submit(fixture.Ann, "j", `{}`)
	site.Complete(id, map[string]string{"out.txt": "x"})
	site.Close()
	c = testConfig(t)
	c.Data = site.Data
	upload, job = site.Blobs.UploadPath(u.ID, u.Generation), site.Path("jobs", string(id))
	old := time.Now().Add(-48 * time.Hour)
	must.OK(t, errors.Join(os.Chtimes(upload, old, old), os.Chtimes(job, old, old)))
	return c, upload, job
}

func TestSweepRemovesWhatNoRecordNames(t *testing.T) {
	t.Parallel()
	c, upload, job := usedConfig(t)
	s, log := opened(t, c)
	s.cleanUp(t.Context())
	if logged(t, log, "leftovers") != nil {
		t.Errorf("in a clean directory, the log has %s", log)
	}
	stray, strayJob := upload+"9", filepath.Join(c.Data, "jobs", "01M7Y8K3GVW6R131MCY2J7HPKF")
	must.Write(t, stray, "")
	must.OK(t, os.Mkdir(strayJob, 0o700))
	old := time.Now().Add(-48 * time.Hour)
	for _, path := range []string{stray, strayJob} {
		must.OK(t, os.Chtimes(path, old, old))
	}
	s.cleanUp(t.Context())
	for path, want := range map[string]bool{stray: false, strayJob: false, upload: true, job: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %t", path, err, want)
		}
	}
	if logged(t, log, "removed leftovers")["removed"] != 2.0 {
		t.Errorf("the log has %s", log)
	}
}

func TestRetentionIsLogged(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.Retention.Failed = unit.Duration(time.Millisecond)
	s, log := opened(t, c)
	submit(t, s, "j")
	_, err := s.app.Jobs.Cancel(t.Context(), anybody, "j")
	must.OK(t, err)
	time.Sleep(5 * time.Millisecond) // the job must be older
	s.retain(t.Context())
	if entry := logged(t, log, "deleted by the rules of retention"); entry["name"] != "j" || entry["organization"] != "lab" || entry["user"] != anybody.Email || entry["status"] != "FAILED" {
		t.Errorf("the log has %s", log)
	}
	if logged(t, log, "clock") != nil || logged(t, log, "retention failed") != nil {
		t.Errorf("the log has %s", log)
	}

	must.OK(t, s.store.Update(t.Context(), func(tx app.Tx) error { return tx.PutStamp(time.Now().Add(-72 * time.Hour)) }))
	s.retain(t.Context())
	if logged(t, log, "clock is more than a day off") == nil {
		t.Errorf("after a leap of the clock, the log has %s", log)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.retain(ctx)
	if logged(t, log, "retention failed") != nil {
		t.Errorf("while the service stops, the log has %s", log)
	}
}

// submit queues a job of the algorithm shell in a service that runs no jobs.
func submit(t *testing.T, s *service, name string) app.JobID {
	t.Helper()
	body, err := strictjson.Parse([]byte(`{"jobName":"` + name + `","type":"shell","settings":{"script":"true"}}`))
	must.OK(t, err)
	_, _, err = s.app.Jobs.Submit(t.Context(), anybody, app.Submission{Name: name, Type: "shell", Settings: body.Member("settings"), Body: body})
	must.OK(t, err)
	var id app.JobID
	must.OK(t, s.store.View(t.Context(), func(tx app.Tx) error {
		j, err := tx.JobNamed("lab", name)
		id = j.ID
		return err
	}))
	return id
}

// If the database cannot be read, nothing counts as garbage.
func TestGarbageCollectionKeepsUnreadableRecordsFiles(t *testing.T) {
	t.Parallel()
	c, upload, job := usedConfig(t)
	s, err := openService(c, zerolog.Nop())
	must.OK(t, err)
	must.OK(t, s.store.Close())
	s.cleanUp(t.Context())
	for _, path := range []string{upload, job} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if s.alive(t.Context()) == nil {
		t.Error("a service with a closed database is alive")
	}
	must.OK(t, errors.Join(s.files.Close(), s.audit.Close(), s.executor.Close()))
}

func TestUsesOfKeysAreSaved(t *testing.T) {
	t.Parallel()
	s, _ := opened(t, testConfig(t))
	key, record, err := s.accounts.CreateKey(t.Context(), app.Operator(), access.KeyRequest{Organization: "lab", Email: anybody.Email, Role: apikey.Member})
	must.OK(t, err)
	_, err = s.accounts.Authenticate(t.Context(), key, netip.Addr{})
	must.OK(t, err)
	must.OK(t, s.saveKeyUses())
	keys, err := s.accounts.Keys(t.Context(), app.Operator())
	if err != nil || len(keys) != 1 || keys[0].ID != record.ID || keys[0].LastUsedAt.IsZero() {
		t.Errorf("keys %+v, %v", keys, err)
	}
}

func TestAttemptsThatRanElsewhereAreFinished(t *testing.T) {
	t.Parallel()
	site := fixture.New(t, app.Options{})
	retried, failed := site.Submit(fixture.Ann, "retried", `{}`), site.Submit(fixture.Ann, "failed", `{}`)
	site.Submit(fixture.Ann, "queued", `{}`)
	site.Start(retried)
	first := site.Start(failed)
	must.OK(t, site.Runs.Finish(t.Context(), failed, first.Attempts, app.Ending{Lost: "once"}))
	site.Start(failed) // its last allowed attempt
	site.Close()
	c := testConfig(t)
	c.Data = site.Data
	requeued, lost, err := FinishLost(t.Context(), c)
	if requeued != 1 || lost != 1 || err != nil {
		t.Errorf("%d queued again, %d lost, %v, want one of each", requeued, lost, err)
	}
	requeued, lost, err = FinishLost(t.Context(), c)
	if requeued+lost != 0 || err != nil {
		t.Errorf("the second time: %d queued again, %d lost, %v", requeued, lost, err)
	}
	c.Algorithms = "/nowhere"
	if _, _, err := FinishLost(t.Context(), c); err == nil {
		t.Error("a directory that can't be opened is no error")
	}
}

func TestSandboxIsThatOfTheAlgorithm(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	must.OK(t, os.WriteFile(filepath.Join(c.Algorithms, "shell.toml"), []byte(shellFile+"\n[sandbox]\nnetwork = true\n"), 0o600))
	s, _ := opened(t, c)
	id := submit(t, s, "j")
	if box, err := s.sandboxOf(t.Context(), id); err != nil || !box.Network {
		t.Errorf("%+v, %v", box, err)
	}
	if _, err := s.sandboxOf(t.Context(), "01M7Y8K3GVW6R131MCY2J7HPKF"); !errors.Is(err, fault.NotFound) {
		t.Errorf("of no job: %v", err)
	}
}

func TestWithoutAClusterNothingIsThere(t *testing.T) {
	t.Parallel()
	s, _ := opened(t, testConfig(t))
	must.OK(t, s.openCluster())
	table := s.routing(nil)
	if _, known := table.Largest(placement.Placement{}); known || table.Missing(placement.Placement{}) != "" {
		t.Error("there is a largest node")
	}
	if all := s.executors(); len(all) != 1 || all[0] != app.Executor(s.executor) {
		t.Errorf("executors %v", all)
	}
}

func TestClusterWaitsForItsFolder(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.Slurm.SharedDir = filepath.Join(t.TempDir(), "not-mounted")
	s, log := opened(t, c)
	must.OK(t, s.openCluster())
	if logged(t, log, "cluster jobs wait")["executor"] != "slurm" || len(s.executors()) != 2 {
		t.Errorf("%d executors; the log has %s", len(s.executors()), log)
	}
	checks, _ := s.ready(t.Context())
	for _, state := range []string{s.slurmState(), fmt.Sprint(checks["slurm"])} {
		if state != "not queried yet" && !strings.HasPrefix(state, "no response since ") && !strings.HasPrefix(state, "the shared folder has been unusable since ") { // depends on whether a query is in progress
			t.Errorf("the cluster is %q", state)
		}
	}
	s.logSlurm("a message", "job", "j")
	if entry := logged(t, log, "a message"); entry["executor"] != "slurm" || entry["job"] != "j" {
		t.Errorf("the log has %v", entry)
	}
	if _, known := s.routing(nil).Largest(placement.Placement{}); known {
		t.Error("the largest node of a cluster is known that was not asked")
	}
}

func TestCommandsWorkWithAndWithoutTheService(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	createKey := func() error {
		return WithControl(t.Context(), c, func(ctx context.Context, control *client.Control) error {
			if deadline, bounded := ctx.Deadline(); !bounded || time.Until(deadline) > time.Minute {
				t.Errorf("a command may take until %v", deadline)
			}
			_, err := control.CreateKey(ctx, client.KeyRequest{Organization: "lab", Email: "ann@lab.example"})
			return err
		})
	}
	must.OK(t, createKey())
	if _, err := os.Stat(filepath.Join(c.Data, commandSocket)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket of the command is left: %v", err)
	}
	r := run(t, c)
	must.OK(t, createKey())
	must.OK(t, r.stop())
	must.OK(t, createKey()) // a leftover socket of an exited service must not matter
	var keys []client.Key
	failed := errors.New("enough")
	err := WithLongControl(t.Context(), c, func(ctx context.Context, control *client.Control) (err error) {
		if _, bounded := ctx.Deadline(); bounded {
			t.Error("a long command is bounded")
		}
		keys, err = control.Keys(ctx)
		return errors.Join(err, failed)
	})
	if len(keys) != 3 || !errors.Is(err, failed) {
		t.Errorf("%d keys, %v, want 3 and the error of the command", len(keys), err)
	}
	must.OK(t, os.Chmod(c.Data, 0o777))
	if err := createKey(); !errors.Is(err, fault.Invalid) {
		t.Errorf("in a directory open to others: %v", err)
	}
}

func TestControlSocketIsTheOperators(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	must.OK(t, os.Mkdir(data, 0o700))
	must.OK(t, os.WriteFile(filepath.Join(data, "s"), nil, 0o644)) // left by a crash
	l, err := listenControl(data, "s")
	must.OK(t, err)
	if info, err := os.Stat(filepath.Join(data, "s")); err != nil || info.Mode() != 0o600|os.ModeSocket {
		t.Errorf("the socket has mode %v, %v", info.Mode(), err)
	}
	for range 20 { // one of them gets the descriptor number that is in the listener's address
		again, err := os.Open(data)
		must.OK(t, err)
		defer again.Close()
	}
	must.OK(t, l.Close())
	if _, err := os.Stat(filepath.Join(data, "s")); err != nil {
		t.Errorf("the end of a service removes the socket, which may be another's by then: %v", err)
	}
	must.OK(t, errors.Join(os.Mkdir(filepath.Join(data, "d"), 0o700), os.WriteFile(filepath.Join(data, "d", "f"), nil, 0o600)))
	for _, dir := range []string{data, filepath.Join(data, "nowhere")} {
		must.Fail(t, fmt.Sprintf("in %s", dir), must.Error2(listenControl(dir, "d")), "control socket: ")
	}
}

func TestServiceKeepsASnapshotAsLongAsItIsNeeded(t *testing.T) {
	t.Parallel()
	r := run(t, testConfig(t))
	snapshots := func() []string {
		found, err := filepath.Glob(filepath.Join(r.config.Data, "*.tmp"))
		must.OK(t, err)
		return found
	}
	u := r.user()
	file := filepath.Join(t.TempDir(), "a.txt")
	must.OK(t, os.WriteFile(file, []byte("text"), 0o600))
	upload, err := u.Upload(t.Context(), "inputs", file)
	must.OK(t, err)
	must.OK(t, snapshot.WithSnapshot(t.Context(), r.config, func(ctx context.Context, s *snapshot.Snapshot) error {
		if !s.Live || len(snapshots()) != 1 {
			t.Errorf("live %t, snapshots %q", s.Live, snapshots())
		}
		must.OK(t, u.DeleteFile(ctx, upload.ID))
		for f, err := range s.Inventory(ctx) {
			must.OK(t, err)
			if _, err := s.Files.Stat(f.Path); err != nil {
				t.Error(err)
			}
		}
		return nil
	}))
	must.Become(t, "the snapshot is removed", func() bool { return len(snapshots()) == 0 })
	must.Become(t, "the deleted file is removed", func() bool {
		left, _ := filepath.Glob(filepath.Join(r.config.Data, "uploads", "??", upload.ID+".*"))
		return len(left) == 0
	})

	err = snapshot.WithSnapshot(t.Context(), r.config, func(ctx context.Context, _ *snapshot.Snapshot) error {
		must.OK(t, r.stop())
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, fault.Unavailable) || len(snapshots()) != 0 {
		t.Errorf("at the end of the service: %v, left %q", err, snapshots())
	}
}
