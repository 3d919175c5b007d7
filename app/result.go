package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"molrun/app/fault"
	"molrun/app/unit"
)

// resultLinkLife is how long a link to a result works. It is part of the
// contract, not a setting.
const resultLinkLife = time.Hour

// ResultLink is a link to what a job produced.
type ResultLink struct {
	URL       string
	FileName  string
	Size      int64
	ExpiresAt unit.Time
}

// ResultRequest asks for a link. File "" is the archive of all files; Partial
// selects the completed rows of a batch.
type ResultRequest struct {
	Name    string
	File    string
	Partial bool
	Base    string // what links begin with
}

// Result links to one file of a completed job, or to its archive.
func (s *Jobs) Result(ctx context.Context, by Caller, r ResultRequest) (*ResultLink, error) {
	var j *Job
	var folders []Folder
	err := s.store.View(ctx, func(tx Tx) (err error) {
		if j, err = jobNamed(tx, by, r.Name); err != nil {
			return err
		}
		if j.Status != Completed && (!r.Partial || !j.IsBatch()) {
			return fault.Errorf(fault.JobNotCompleted, "job %q is %s; a result can be fetched when it is COMPLETED", r.Name, j.Status)
		}
		if r.File, j, err = fileOf(tx, j, r.File); err != nil {
			return err
		}
		folders, err = archiveFolders(tx, j, r.Partial)
		return err
	})
	if err != nil {
		return nil, err
	}
	expires := unit.At(s.now().Add(resultLinkLife))
	out := &ResultLink{ExpiresAt: expires}
	link := Link{ID: string(j.ID), Expires: expires.Time, Holder: by.KeyID, Issued: by.At}
	if r.File == "" {
		err = s.linkArchive(&link, out, j, folders, r.Partial)
	} else {
		err = s.linkFile(&link, out, j, r.File, folders)
	}
	if err != nil {
		return nil, err
	}
	out.URL = r.Base + s.blobs.Link(link)
	return out, nil
}

// fileOf resolves a file name: "" is the archive; in a batch, so is
// <batchName>.zip, and <row>/<path> is a file of that row.
func fileOf(tx Tx, j *Job, file string) (string, *Job, error) {
	if file == "" || !j.IsBatch() {
		return file, j, nil
	}
	if file == archiveName(j) {
		return "", j, nil
	}
	name, path, _ := strings.Cut(file, "/")
	row, err := tx.JobNamed(j.Organization, name)
	if err != nil || row.Private.Batch != j.ID || row.Status != Completed || path == "" {
		return "", nil, fault.Errorf(fault.NotFound, "batch %q has no completed row with the file %q; name it <row>/<path>", j.Name, file)
	}
	return path, row, nil
}

func archiveName(j *Job) string { return j.Name + ".zip" }

func (s *Jobs) linkArchive(link *Link, out *ResultLink, j *Job, folders []Folder, partial bool) (err error) {
	link.Kind = ArchiveGet
	if partial && j.IsBatch() {
		link.Kind = PartArchive
	}
	out.FileName = archiveName(j)
	link.Filename = out.FileName
	out.Size, err = s.blobs.ArchiveSize(folders)
	return err
}

// linkFile links to a file of a result. The name of the archive means a file
// only if the program wrote one of that name.
func (s *Jobs) linkFile(link *Link, out *ResultLink, j *Job, file string, folders []Folder) error {
	manifest, err := s.blobs.Manifest(j.ID)
	if err != nil {
		return err
	}
	i := manifest.Find(file)
	switch {
	case i < 0 && file == archiveName(j):
		return s.linkArchive(link, out, j, folders, false)
	case i < 0:
		return fault.Errorf(fault.NotFound, "the result of job %q has no file %q; GET /jobs/{jobName}/files lists them", j.Name, file)
	}
	link.Kind, link.File, link.Filename = ResultGet, i, filepath.Base(file)
	out.FileName, out.Size = file, manifest.Files[i].Size
	return nil
}

func archiveFolders(tx Tx, j *Job, partial bool) ([]Folder, error) {
	if !j.IsBatch() {
		return []Folder{{Job: j.ID}}, nil
	}
	folders := []Folder{}
	for row, err := range tx.Subjobs(j.ID, Completed) {
		if err != nil {
			return nil, err
		}
		folders = append(folders, Folder{Name: row.Name, Job: row.ID})
	}
	return folders, nil
}

// ArchiveFolders returns the folders of a job's archive; partial selects only
// the completed rows of a batch.
func (s *Jobs) ArchiveFolders(ctx context.Context, id JobID, partial bool) (folders []Folder, err error) {
	err = s.store.View(ctx, func(tx Tx) error {
		j, err := tx.Job(id)
		if err != nil {
			return err
		}
		if j.Status != Completed && !partial {
			return fault.Errorf(fault.NotFound, "the result is no longer there; ask for a new link")
		}
		folders, err = archiveFolders(tx, j, partial)
		return err
	})
	return folders, err
}

// Log is a part of an attempt's log.
type Log struct {
	io.Reader
	io.Closer
	Size   int64 // of the whole log now
	Length int64 // of this part
}

// LogRequest selects a part of a log. Attempt 0 is the latest, Limit < 0 reads
// to the end.
type LogRequest struct {
	Name          string
	Attempt       int
	Offset, Limit int64
}

// Log opens the output of a job's program, even while it runs. A log longer
// than its limit has lost its middle, and says so in a line.
func (s *Jobs) Log(ctx context.Context, by Caller, r LogRequest) (*Log, error) {
	var j *Job
	err := s.store.View(ctx, func(tx Tx) (err error) {
		j, err = jobNamed(tx, by, r.Name)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case j.IsBatch():
		return nil, fault.Errorf(fault.NotFound, "batch %q has no log of its own; ask for the log of a row", r.Name)
	case r.Attempt > j.Attempts:
		return nil, fault.Errorf(fault.NotFound, "job %q had %d attempts so far; leave attempt out for the log of the latest", r.Name, j.Attempts)
	case r.Attempt == 0:
		r.Attempt = j.Attempts
	}
	f, err := os.Open(filepath.Join(s.blobs.JobDir(j.ID), strconv.Itoa(r.Attempt), "log"))
	if errors.Is(err, fs.ErrNotExist) {
		return &Log{Reader: strings.NewReader(""), Closer: io.NopCloser(nil)}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open log: %w", err)
	}
	log := &Log{Closer: f, Size: info.Size()}
	log.Length = max(0, log.Size-r.Offset)
	if r.Limit >= 0 {
		log.Length = min(log.Length, r.Limit)
	}
	log.Reader = io.NewSectionReader(f, r.Offset, log.Length)
	return log, nil
}
