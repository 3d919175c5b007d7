package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/server/config"
	"molrun/app/server/host"
	"molrun/app/test/must"
	"molrun/blobs"
	"molrun/storage"
)

// TestServiceThatEndsBeforeItAnswersCountsAsNone uses a listener in place of a crashed
// service, whose socket stays open briefly.
func TestServiceThatEndsBeforeItAnswersCountsAsNone(t *testing.T) {
	data, err := os.MkdirTemp("", "molrun") // a socket address has at most 107 bytes
	must.OK(t, err)
	defer os.RemoveAll(data)
	store, err := storage.Open(filepath.Join(data, host.Database), storage.Options{AnyFileSystem: true})
	must.OK(t, err)
	must.OK(t, store.Close())
	last, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(data, host.Socket)})
	must.OK(t, err)
	last.SetUnlinkOnClose(false)
	asked := make(chan error, 1)
	go func() {
		asked <- func() error {
			probe, err := last.Accept() // the connection that host.Running makes
			if err != nil {
				return err
			}
			request, err := last.Accept()
			if err != nil {
				return errors.Join(err, probe.Close())
			}
			return errors.Join(probe.Close(), request.Close(), last.Close())
		}()
	}()
	c := config.Default()
	c.Data = data
	used := 0
	must.OK(t, WithSnapshot(t.Context(), c, func(_ context.Context, s *Snapshot) error {
		if used++; s.Live {
			t.Error("the snapshot is that of a service")
		}
		return nil
	}))
	must.Equal(t, "the snapshot was used", used, 1)
	must.OK(t, <-asked)
}

func TestReplyOfAServiceNamesAFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status     int
		body, name string
		says       string
	}{
		{200, `{"snapshot":"jobs.db.1"}` + "\n", "jobs.db.1", ""},
		{200, `{"snapshot":"../jobs.db"}` + "\n", "", "not a file name"},
		{200, "no JSON\n", "", "invalid character"},
		{200, `{"snapshot":"jobs`, "", "EOF"},
		{503, `{"error":{"code":"UNAVAILABLE","message":"it ends"}}` + "\n", "", "it ends"},
		{404, "page not found\n", "", "a different version"},
	} {
		reply, err := readReply(&http.Response{StatusCode: tt.status, Body: io.NopCloser(strings.NewReader(tt.body))})
		if tt.says == "" && err == nil && reply.Snapshot == tt.name {
			continue
		}
		if tt.says == "" || err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%d %s: %v, %v", tt.status, tt.body, reply, err)
		}
	}
}

// TestOnlyCompletedJobsHaveResults lists the files of jobs that have none.
func TestOnlyCompletedJobsHaveResults(t *testing.T) {
	t.Parallel()
	files, err := blobs.OpenTree(t.TempDir())
	must.OK(t, err)
	defer files.Close()
	s := &Snapshot{Files: files}
	const id = app.JobID("01M7Y8K3GVW6R131MCY2J7HPKF")
	batch := &app.Job{ID: id, Status: app.Completed, Counts: &app.Counts{}}
	for job, missing := range map[*app.Job]int{
		{ID: id, Status: app.Queued}: 0, {ID: id, Status: app.Failed, Attempts: 1}: 0, batch: 0, {ID: id, Status: app.Completed, Attempts: 1}: 1,
	} {
		errs := 0
		for f, err := range s.filesOf(job, nil) {
			if err == nil {
				t.Errorf("%s lists %s", job.Status, f.Path)
			}
			errs++
		}
		must.Equal(t, fmt.Sprintf("%s, batch %t", job.Status, job.IsBatch()), errs, missing)
	}
}
