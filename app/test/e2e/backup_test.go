package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"molrun/app"
	"molrun/app/client"
	"molrun/app/server/backup"
	"molrun/app/server/host"
	"molrun/app/test/must"
	"molrun/app/test/whole"
	"molrun/storage"
)

// ok runs a command, which must succeed, and returns its output.
func (s *instance) ok(args ...string) string {
	s.t.Helper()
	out, errs, code := s.run(args...)
	if code != 0 {
		s.t.Fatalf("molrun %s: exit code %d: %s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// fails runs a command that must exit with the given code and print the reason.
func (s *instance) fails(code int, why string, args ...string) {
	s.t.Helper()
	wantFailure(s.t, s.run, code, why, args)
}

func (p *person) fails(code int, why string, args ...string) {
	p.t.Helper()
	wantFailure(p.t, p.run, code, why, args)
}

func wantFailure(t *testing.T, run func(...string) (string, string, int), code int, why string, args []string) {
	t.Helper()
	if out, errs, got := run(args...); got != code || !strings.Contains(errs, why) {
		t.Errorf("molrun %s: exit code %d, want %d and %q: %s%s", strings.Join(args, " "), got, code, why, out, errs)
	}
}

// backup takes a backup and returns its record.
func (s *instance) backup(dir string, flags ...string) (r backup.Record) {
	s.t.Helper()
	out := s.ok(append([]string{"backup", dir, "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		s.t.Fatalf("%v in %s", err, out)
	}
	return r
}

// checkClean fails the test if a check of the data directory finds a problem.
func (s *instance) checkClean(data string) {
	s.t.Helper()
	s.ok("check", "--deep", "--data", data)
}

// startOn starts another server with the same configuration on a different data
// directory.
func (s *instance) startOn(data string) *instance {
	s.t.Helper()
	other := &instance{
		t: s.t, dir: s.dir, dataDir: data, env: s.env, flags: []string{"--data", data, "--listen", "127.0.0.1:0"},
		stderr: &whole.Log{}, secrets: &confidential{}, http: s.http,
	}
	s.t.Cleanup(func() {
		other.kill()
		for _, p := range s.processes(data) {
			must.OK(s.t, killProcess(p))
		}
	})
	other.start()
	return other
}

func killProcess(pid int) error {
	p, err := os.FindProcess(pid)
	if err == nil {
		_ = p.Kill() // the process might have exited
	}
	return err
}

// load keeps a service busy with clients that repeatedly upload, submit and delete.
type load struct {
	cancel  context.CancelFunc
	clients sync.WaitGroup
	rounds  [4]int
}

func startLoad(t *testing.T, s *instance, key, dir string) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel}
	t.Cleanup(l.stop)
	for n := range l.rounds {
		c := client.New(s.base, key)
		l.clients.Go(func() {
			defer c.Close()
			for ; ctx.Err() == nil; l.rounds[n]++ {
				round(ctx, c, dir, fmt.Sprintf("load-%d-%d", n, l.rounds[n]))
			}
		})
	}
	return l
}

func (l *load) stop() {
	l.cancel()
	l.clients.Wait()
}

// round uploads a file, submits a job and sometimes deletes both. It can stop at any
// point once ctx is done.
func round(ctx context.Context, c *client.Client, dir, name string) {
	path := filepath.Join(dir, name+".txt")
	if os.WriteFile(path, []byte(strings.Repeat(name+"\n", 2000)), 0o600) != nil {
		return
	}
	file, err := c.Upload(ctx, "inputs", path)
	if err != nil {
		return
	}
	_, _ = c.Submit(ctx, client.Submission{
		Name: name, Type: "shell", Settings: json.RawMessage(script("echo " + name + " > out/name.txt")),
	})
	if strings.HasSuffix(name, "3") {
		_ = c.DeleteFile(ctx, file.ID)
		if _, err := c.Wait(ctx, name); err == nil {
			_ = c.Delete(ctx, name)
		}
	}
}

func TestBackupUnderLoadIsRestoredByteForByte(t *testing.T) {
	t.Parallel()
	s := shellServer(t, "[runner]\ncpus = 4\nmemory = \"4GiB\"\n")
	u := s.user("lab", "ann@lab.example")
	for i := range 5 {
		name := fmt.Sprintf("before-%d", i)
		u.upload(name+".txt", name)
		u.submit(name, "shell", script("echo "+name+" > out/name.txt"))
		u.finished(name)
	}
	gate := s.gate("go")
	u.submit("runs", "shell", script(gate.wait()+"; echo runs > out/name.txt"))
	u.running("runs")
	l := startLoad(t, s, u.key, t.TempDir())
	dir := filepath.Join(t.TempDir(), "backups")
	var last backup.Record
	for i := range 3 {
		last = s.backup(dir)
		if i > 0 && (last.Linked == 0 || last.Linked >= last.Bytes) {
			t.Errorf("backup %d: %d of %d bytes are links", i, last.Linked, last.Bytes)
		}
		s.ok("check") // while the service runs
	}
	l.stop()

	data := filepath.Join(t.TempDir(), "elsewhere")
	var r backup.Restored
	must.OK(t, json.Unmarshal([]byte(s.ok("restore", dir, "--data", data, "--json")), &r))
	if r.Backup != last.Name || r.Files != last.Files || r.Requeued == 0 {
		t.Errorf("restored %+v of %+v", r, last)
	}
	s.checkClean(data)
	sameAsSnapshot(t, s, u, filepath.Join(dir, last.Name, "data"), data)

	gate.open(t)
	if j := u.finished("runs"); j.Status != "COMPLETED" || j.Attempts != 1 {
		t.Errorf("the job on the original server: %+v", j)
	}
	t.Logf("%d rounds of load; the last backup has %d jobs, %d uploads, %d files of %d bytes, %d copied",
		l.rounds[0]+l.rounds[1]+l.rounds[2]+l.rounds[3], last.Jobs, last.Uploads, last.Files, last.Bytes, last.Copied)
}

// sameAsSnapshot checks that a service on the restored data has every job and file in the
// snapshot.
func sameAsSnapshot(t *testing.T, s *instance, u user, snapshot, data string) {
	t.Helper()
	records, err := storage.OpenReadOnly(filepath.Join(snapshot, host.Database))
	must.OK(t, err)
	defer records.Close()
	restored := user{s.startOn(data), u.key}
	jobs, files := 0, 0
	for j, err := range records.Jobs(t.Context()) {
		must.OK(t, err)
		jobs++
		now := restored.job(j.Name)
		switch {
		case now.JobID != string(j.ID):
			t.Errorf("job %s is now %s", j.ID, now.JobID)
		case j.Status == app.Completed:
			restored.wantResult(j.Name, "name.txt", j.Name+"\n")
		case j.Status == app.Running && now.Status == "RUNNING" && now.Attempts <= j.Attempts:
			t.Errorf("job %s is still RUNNING: %+v", j.Name, now)
		}
	}
	for f, err := range records.Uploads(t.Context()) {
		must.OK(t, err)
		if f.Generation == 0 {
			continue
		}
		files++
		name := strings.TrimSuffix(f.Filename, ".txt")
		want := name
		if strings.HasPrefix(name, "load-") {
			want = strings.Repeat(name+"\n", 2000)
		}
		path := fmt.Sprintf("uploads/%s/%s.%d", f.ID[len(f.ID)-2:], f.ID, f.Generation)
		if got, err := os.ReadFile(filepath.Join(data, path)); err != nil || string(got) != want {
			t.Errorf("file %s: %d bytes, want %d, %v", f.Filename, len(got), len(want), err)
		}
	}
	if jobs < 6 || files < 5 {
		t.Errorf("only %d jobs and %d files in the snapshot", jobs, files)
	}
	restored.stop()
}

// serverWithFiles starts a server, uploads files, runs a job and returns the user.
func serverWithFiles(t *testing.T, files int) (*instance, user) {
	t.Helper()
	s := shellServer(t, "")
	u := s.user("lab", "ann@lab.example")
	for i := range files {
		u.upload(fmt.Sprintf("f%d.txt", i), strings.Repeat(fmt.Sprintf("line of %d\n", i), 1000))
	}
	u.submit("j", "shell", script("echo j > out/name.txt"))
	u.finished("j")
	return s, u
}
