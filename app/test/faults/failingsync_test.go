package faults

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"molrun/app/client"
	"molrun/app/test/must"
)

// failingSync returns an injection that makes every sync of these files fail once it is
// armed.
func (s *server) failingSync(dir, files string) injection {
	return injection{
		Calls: []string{"fsync", "fdatasync"}, Files: files, Dir: dir, When: 1, Error: syscall.EIO, Lasts: true,
		Armed: s.path("armed"), Trace: s.path("trace"),
	}
}

// failures returns the number of failed calls.
func (in injection) failures() int {
	text, _ := os.ReadFile(in.Trace) // missing until the first failure
	return bytes.Count(text, []byte("\n"))
}

// arm makes the calls fail until disarm is called.
func (in injection) arm(t *testing.T) (disarm func()) {
	t.Helper()
	must.OK(t, os.WriteFile(in.Armed, nil, 0o600))
	return func() { must.OK(t, os.Remove(in.Armed)) }
}

// Nothing that cannot be made durable may be acknowledged: no upload, no result of a job,
// no secret. When the disk works again, so must the service.
func TestFailedSyncIsNeverAcknowledged(t *testing.T) {
	t.Parallel()
	needInjection(t)
	upload := func(s *server) error { return s.upload(s.client(), "a.fasta") }
	rotate := func(s *server) error {
		_, err := client.NewControl(filepath.Join(s.data, "control.sock")).RotateSecret(s.t.Context())
		return err
	}
	for _, tt := range []struct {
		name, files string
		do          func(*server) error
	}{
		{"upload", `^uploads/tmp/`, upload},
		{"name of an upload", `^uploads/[^/]{2}$`, upload},
		{"directory of uploads", `^uploads$`, upload},
		{"secret", `^\.secret`, rotate},
		{"name of the secret", `^\.$`, rotate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "", "")
			in := s.failingSync(s.data, tt.files)
			s.prefix = in.prefix(t)
			s.start()
			disarm := in.arm(t)
			if err := tt.do(s); err == nil || !in.made() {
				t.Errorf("acknowledged after %d failed syncs: %v", in.failures(), err)
			}
			disarm()
			if err := tt.do(s); err != nil {
				t.Errorf("after the fault: %v", err)
			}
			s.stop()
			s.check("--deep")
		})
	}
}

// TestFailedSyncKeepsAJobFromCompletion makes syncs fail either from the start or once
// the job's program is running.
func TestFailedSyncKeepsAJobFromCompletion(t *testing.T) {
	t.Parallel()
	needInjection(t)
	for _, tt := range []struct {
		name, files string
		early       bool // the file is created before the program runs, so syncs fail from the start
	}{
		{"task", `/1/\.task\.json`, true},
		{"name of the task", `^jobs/[^/]+/1$`, true},
		{"output", `/[0-9]/work/out/result\.txt$`, false},
		{"names of the output", `/[0-9]/work/out$`, false},
		{"name of the output directory", `/[0-9]/work$`, false},
		{"outcome", `/1/\.outcome\.json`, false},
		{"names in the attempt", `^jobs/[^/]+/1$`, false},
		{"log", `/1/log$`, false},
		{"result", `/result/result\.txt$`, false},
		{"names in the result", `/result$`, false},
		{"record", `/\.job\.json`, false},
		{"manifest", `/\.manifest\.json`, false},
		{"names in the job", `^jobs/[^/]+$`, false},
		{"name of the job", `^jobs$`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "", "")
			in := s.failingSync(s.data, tt.files)
			s.prefix = in.prefix(t)
			s.start()
			c, gate := s.client(), s.path("gate")
			status := func() string {
				j, err := c.Job(t.Context(), "j")
				must.OK(t, err)
				return j.Status
			}
			disarm := func() {}
			if tt.early {
				disarm = in.arm(t)
			}
			_, err := c.Submit(t.Context(), withGate(diaryJob("j", 0, 1), gate))
			must.OK(t, err)
			if !tt.early {
				must.Become(s.t, "the program runs", func() bool { return s.begun("j") })
				disarm = in.arm(t)
			}
			must.OK(t, os.WriteFile(gate, nil, 0o600))
			must.Become(s.t, "the sync has failed twice, or the job", func() bool {
				return in.failures() > 1 && !tt.early || status() == "FAILED" || status() == "COMPLETED"
			})
			if got := status(); got == "COMPLETED" || !in.made() {
				t.Errorf("the job is %s after %d failed syncs", got, in.failures())
			}
			disarm()
			job, err := c.Wait(t.Context(), "j")
			must.OK(t, err)
			if job.Status != "COMPLETED" && !tt.early { // an attempt that cannot be prepared may fail
				t.Errorf("after the fault, the job is %s: %+v", job.Status, job.Failure)
			}
			s.stop()
			s.check("--deep")
		})
	}
}

// TestFailedSyncFailsTheCommand also repeats each command after the fault.
func TestFailedSyncFailsTheCommand(t *testing.T) {
	t.Parallel()
	needInjection(t)
	s := newServer(t, "", "")
	s.start()
	must.OK(t, s.upload(s.client(), "a.fasta"))
	s.stop()
	backup, restore := []string{"backup", s.path("backups")}, []string{"restore", s.path("backups"), "--data", s.path("restored")}
	for n, tt := range []struct {
		files string
		args  []string
	}{
		{`^data/jobs\.db\.compact`, []string{"compact"}},
		{`^data$`, []string{"compact"}},
		{`^data/\.secret`, []string{"secret", "rotate"}},
		{`^backups/partial/data/uploads/.+/`, backup},
		{`^backups/partial/data/uploads/..$`, backup},
		{`^backups/partial/SHA256SUMS`, backup},
		{`^backups/partial/\.backup\.json`, backup},
		{`^backups$`, backup},
		{`^restored/restoring/uploads/.+/`, restore},
		{`^restored/restoring/uploads/..$`, restore},
		{`^restored$`, restore},
	} {
		in := s.failingSync(s.dir, tt.files)
		in.Armed, in.Trace = "", s.path(fmt.Sprint("trace", n))
		if tt.args[0] == "compact" && n == 0 {
			in.Calls, in.When = []string{"fdatasync"}, 2 // the sync of the whole copy, which follows that of the empty file
		}
		s.prefix = in.prefix(t)
		command := strings.Join(tt.args, " ")
		if out, err := s.command(t.Context(), tt.args...).CombinedOutput(); err == nil || !in.made() {
			t.Errorf("molrun %s with a failing sync of %s (%d failures): %v\n%s", command, tt.files, in.failures(), err, out)
		}
		s.prefix = nil
		if out, err := s.command(t.Context(), tt.args...).CombinedOutput(); err != nil {
			t.Errorf("molrun %s after the fault: %v\n%s", command, err, out)
		}
		must.OK(t, os.RemoveAll(s.path("restored")))
	}
	s.check("--deep")
}
