package apptest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"molrun/app/placement"

	"molrun/app"
	"molrun/app/strictjson"
	"molrun/app/upload"
)

// Submit queues a job of the algorithm echo.
func (s *Site) Submit(by app.Caller, name, settings string) app.JobID {
	s.t.Helper()
	body := s.parse(fmt.Sprintf(`{"jobName":%q,"type":"echo","settings":%s}`, name, settings))
	rec, created, err := s.Jobs.Submit(s.t.Context(), by, app.Submission{Name: name, Type: "echo", Settings: body.Member("settings"), Body: body})
	must(s.t, err)
	return s.created(rec, created)
}

// SubmitBatch queues a batch and returns the IDs of it and of its rows.
func (s *Site) SubmitBatch(by app.Caller, name string, rows ...string) (batch app.JobID, subjobs []app.JobID) {
	s.t.Helper()
	body := s.parse(fmt.Sprintf(`{"batchName":%q,"type":"echo","settings":[%s]}`, name, strings.Join(rows, ",")))
	rec, created, err := s.Jobs.SubmitBatch(s.t.Context(), by, app.BatchSubmission{Name: name, Type: "echo", Rows: body.Member("settings").Items, Body: body})
	must(s.t, err)
	batch = s.created(rec, created)
	for n := range rows {
		rec, err := s.Jobs.Get(s.t.Context(), by, fmt.Sprintf("%s-%d", name, n+1), 0)
		must(s.t, err)
		subjobs = append(subjobs, s.created(rec, true))
	}
	return batch, subjobs
}

func (s *Site) parse(text string) *strictjson.Value {
	s.t.Helper()
	v, err := strictjson.Parse([]byte(text))
	must(s.t, err)
	return v
}

func (s *Site) created(rec app.Record, created bool) app.JobID {
	s.t.Helper()
	var j app.Job
	must(s.t, json.Unmarshal(rec, &j))
	if !created {
		s.t.Fatalf("job %q existed already", j.Name)
	}
	return j.ID
}

// Start claims a job and reports that its process runs.
func (s *Site) Start(id app.JobID) *app.Job {
	s.t.Helper()
	j, _, err := s.Runs.Claim(s.t.Context(), id, placement.Devices{}, app.Portion{})
	must(s.t, err)
	must(s.t, s.Runs.Started(s.t.Context(), id, j.Attempts, s.Now()))
	return j
}

// Complete runs a job to success, with these files of its result and the log of its
// attempt.
func (s *Site) Complete(id app.JobID, files map[string]string) {
	s.t.Helper()
	j, m, bytes := s.Start(id), &app.Manifest{}, int64(0)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := []byte(files[name])
		s.write(filepath.Join(s.Blobs.JobDir(id), "result", name), text)
		sum := sha256.Sum256(text)
		m.Files = append(m.Files, app.ManifestFile{
			Name: name, Path: "result/" + name, Size: int64(len(text)), CRC32: crc32.ChecksumIEEE(text), SHA256: hex.EncodeToString(sum[:]),
		})
		bytes += int64(len(text))
	}
	s.write(filepath.Join(s.Blobs.JobDir(id), fmt.Sprint(j.Attempts), "log"), []byte("it went well\n"))
	must(s.t, s.Blobs.WriteManifest(id, m))
	s.finish(j, app.Ending{Outcome: &app.Outcome{Cause: app.CauseDone}, ResultBytes: bytes})
}

// Fail runs a job to failure; these files stay in its directory.
func (s *Site) Fail(id app.JobID, files map[string]string) {
	s.t.Helper()
	j := s.Start(id)
	for name, text := range files {
		s.write(filepath.Join(s.Blobs.JobDir(id), fmt.Sprint(j.Attempts), name), []byte(text))
	}
	s.finish(j, app.Ending{
		Outcome: &app.Outcome{Cause: app.CauseExit, ExitCode: 1},
		Failure: &app.Failure{Code: app.FailedExit, Message: "The program ended with exit status 1."},
	})
}

func (s *Site) finish(j *app.Job, e app.Ending) {
	s.t.Helper()
	e.Outcome.StartedAt = s.Now()
	e.Outcome.EndedAt = e.Outcome.StartedAt.Add(time.Minute)
	must(s.t, s.Runs.Finish(s.t.Context(), j.ID, j.Attempts, e))
}

// Upload stores a completed upload in the folder inputs.
func (s *Site) Upload(by app.Caller, filename, text string) *app.Upload {
	s.t.Helper()
	ctx := s.t.Context()
	grant, err := s.Files.Create(ctx, by, upload.Request{Filename: filename})
	must(s.t, err)
	generation, _, err := s.Files.BeginUpload(ctx, grant.Upload.ID, -1)
	must(s.t, err)
	s.write(s.Blobs.UploadPath(grant.Upload.ID, generation), []byte(text))
	sum := sha256.Sum256([]byte(text))
	_, err = s.Files.FinishUpload(ctx, grant.Upload.ID, app.StoredFile{Generation: generation, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:]), CRC32: crc32.ChecksumIEEE([]byte(text))})
	must(s.t, err)
	u, err := s.Files.Complete(ctx, by, string(grant.Upload.ID), nil)
	must(s.t, err)
	return u
}

func (s *Site) write(path string, text []byte) {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(s.t, os.WriteFile(path, text, 0o600))
}
