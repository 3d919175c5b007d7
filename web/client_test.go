package web_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

func TestClientUploadsRunsAndDownloads(t *testing.T) {
	s := start(t)
	ctx := t.Context()
	c := client.NewWith(s.url+"/", s.ann, s.client.Transport)
	dir := t.TempDir()

	source := filepath.Join(dir, "a b%.pdb")
	s.write(source, "ATOM")
	file, err := c.Upload(ctx, "in put/x", source)
	must.OK(t, err)
	same(t, "file", []any{file.Filename, file.Folder, file.Size, file.SHA256}, []any{"a b%.pdb", "in put/x", int64(4), sha256Hex("ATOM")})

	sub := client.Submission{Name: "ä ?%#", Type: "echo", Settings: json.RawMessage(`{"structure":"in put/x/a b%.pdb"}`)}
	v, err := c.Validate(ctx, sub)
	if err != nil || !v.Valid {
		t.Fatalf("%+v, %v", v, err)
	}
	job, err := c.Submit(ctx, sub)
	if err != nil || !job.Created || job.Inputs[0].FileID != file.ID {
		t.Fatalf("%+v, %v", job, err)
	}
	if again, err := c.Submit(ctx, sub); err != nil || again.Created || again.ID != job.ID {
		t.Errorf("%+v, %v", again, err)
	}
	done := make(chan error)
	go func() {
		_, err := c.Wait(ctx, sub.Name)
		done <- err
	}()
	s.run(escaped(sub.Name), map[string]string{"out/x.txt": "text", "log.txt": "line 1\nline 2\n"})
	must.OK(t, <-done)
	part, size, err := c.Log(ctx, sub.Name, 1, 7, 4)
	must.OK(t, err)
	text, err := io.ReadAll(part)
	if err := errors.Join(err, part.Close()); err != nil || string(text) != "line" || size != 14 {
		t.Errorf("log %q of %d, %v", text, size, err)
	}
	files, err := c.ResultFiles(ctx, sub.Name)
	if err != nil || len(files) != 2 || files[1].Path != "out/x.txt" {
		t.Errorf("%+v, %v", files, err)
	}
	target := filepath.Join(dir, "x.txt")
	must.OK(t, c.Download(ctx, client.ResultRequest{Job: sub.Name, File: "out/x.txt"}, target))
	if text, err := os.ReadFile(target); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	must.OK(t, c.Download(ctx, client.ResultRequest{Job: sub.Name}, filepath.Join(dir, "all.zip")))
	if left, err := filepath.Glob(filepath.Join(dir, "*.part*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	must.OK(t, c.Delete(ctx, sub.Name))
	must.OK(t, c.DeleteFile(ctx, file.ID))
}

func TestClientListsAllPages(t *testing.T) {
	s := start(t)
	c := client.NewWith(s.url, s.ann, s.client.Transport)
	rows := []json.RawMessage{json.RawMessage(`{}`), json.RawMessage(`{}`), json.RawMessage(`{}`)}
	batch, err := c.SubmitBatch(t.Context(), client.BatchSubmission{Name: "b", Type: "echo", Settings: rows, Names: []string{"x", "y", "z"}})
	if err != nil || batch.Counts["QUEUED"] != 3 {
		t.Fatalf("%+v, %v", batch, err)
	}
	var names []string
	for job, err := range c.Jobs(t.Context(), client.JobFilter{Batch: "b", WholeOrganization: true, PageSize: 1, Status: "QUEUED", Algorithm: "echo"}) {
		must.OK(t, err)
		names = append(names, job.Name)
	}
	same(t, "rows", names, []string{"z", "y", "x"})
	for job, err := range c.Jobs(t.Context(), client.JobFilter{Subjobs: true}) {
		if err != nil || len(job.Subjobs) != 3 {
			t.Errorf("%+v, %v", job, err)
		}
	}
	for _, err := range c.Jobs(t.Context(), client.JobFilter{Status: "none"}) {
		if err == nil {
			t.Error("an unknown status was accepted")
		}
	}
	s.upload("a.pdb", "1")
	s.upload("b.pdb", "2")
	names = nil
	for file, err := range c.Files(t.Context(), client.FileFilter{Folder: "inputs", WholeOrganization: true, PageSize: 1}) {
		must.OK(t, err)
		names = append(names, file.Filename)
	}
	same(t, "files", names, []string{"b.pdb", "a.pdb"})
	if job, err := c.Cancel(t.Context(), "x"); err != nil || job.Failure.Code != "STOPPED" {
		t.Errorf("%+v, %v", job, err)
	}
	if job, err := c.Retry(t.Context(), "x"); err != nil || job.Status != "QUEUED" {
		t.Errorf("%+v, %v", job, err)
	}
	if job, err := c.Pin(t.Context(), "x"); err != nil || !job.Pinned {
		t.Errorf("%+v, %v", job, err)
	}
	if job, err := c.Unpin(t.Context(), "x"); err != nil || job.Pinned {
		t.Errorf("%+v, %v", job, err)
	}
	if job, err := c.NextJob(t.Context(), "x", 5*time.Millisecond); err != nil || job.Status != "QUEUED" {
		t.Errorf("%+v, %v", job, err)
	}
	if list, err := c.Algorithms(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if one, err := c.Algorithm(t.Context(), "echo", "1"); err != nil || len(one.Schema) == 0 {
		t.Errorf("%+v, %v", one, err)
	}
}

func TestClientReturnsErrorsOfTheService(t *testing.T) {
	s := start(t)
	var e *client.Error
	_, err := client.NewWith(s.url, "wrong", s.client.Transport).Job(t.Context(), "a")
	if !errors.As(err, &e) || e.Status != 401 || e.Code != "UNAUTHORIZED" || e.Request == "" {
		t.Errorf("%#v", err)
	}
	c := client.NewWith(s.url, s.ann, s.client.Transport)
	_, err = c.Submit(t.Context(), client.Submission{Name: "a", Type: "echo", Settings: json.RawMessage(`{"steps":0}`)})
	if !errors.As(err, &e) || e.Status != 422 || e.Code != "INVALID" || len(e.Details) != 1 {
		t.Errorf("%#v", err)
	}
	for _, name := range []string{"..", ".", "a/b", "%2e%2e"} {
		if _, err := c.Job(t.Context(), name); !errors.As(err, &e) || e.Code != "NOT_FOUND" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Download(t.Context(), client.ResultRequest{Job: "absent"}, filepath.Join(t.TempDir(), "x")); !errors.As(err, &e) || e.Code != "NOT_FOUND" {
		t.Errorf("%v", err)
	}
}
