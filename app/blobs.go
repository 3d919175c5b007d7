package app

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"molrun/app/base/unit"
)

// Blobs stores files and signs links to them. It is implemented by package blobs.
type Blobs interface {
	// Link returns the signed path and query of a link, without the base URL.
	Link(l Link) string
	// RevokeLinks revokes all links issued to a holder.
	RevokeLinks(holder string) error
	// UploadPath returns the path of an uploaded file.
	UploadPath(id UploadID, generation int) string
	// JobDir returns the directory of a job, with its attempts, result and manifest.
	JobDir(id JobID) string
	// Manifest reads the manifest of a finished job. It returns NotFound if there is
	// none.
	Manifest(id JobID) (*Manifest, error)
	// ArchiveSize returns the length of an archive in bytes.
	ArchiveSize(a Archive) (int64, error)
	// Disk reports disk usage.
	Disk() (Disk, error)
	// JobSize returns the total size of a job's files in bytes, 0 if it has none.
	JobSize(id JobID) (int64, error)
	// RemoveUpload and RemoveJob free the disk space at once, or when the last download
	// in progress ends. Removing something already removed is not an error.
	RemoveUpload(id UploadID, generation int) error
	RemoveJob(id JobID) error
	// RemovePartial does the same for the received data of a resumable upload.
	RemovePartial(id UploadID, generation int) error
}

// Disk is the usage of the data directory's disk.
type Disk struct {
	Size    int64 `json:"size"`    // total bytes
	Free    int64 `json:"free"`    // free bytes available to this process
	Reserve int64 `json:"reserve"` // part of Free that uploads and new jobs must leave unused

	// The same for inodes. Files is 0 if the file system sets no limit.
	Files        int64 `json:"files"`
	FreeFiles    int64 `json:"freeFiles"`
	ReserveFiles int64 `json:"reserveFiles"`
}

// Shortage returns a description of what the disk would run short of if more bytes were
// stored, or "" if there would be enough.
func (d Disk) Shortage(more int64) string {
	switch {
	case d.Free-more < d.Reserve:
		return fmt.Sprintf("%s free, at least %s must stay free", unit.Bytes(d.Free), unit.Bytes(d.Reserve))
	case d.Files > 0 && d.FreeFiles < d.ReserveFiles:
		return fmt.Sprintf("%s more can be created, at least %d must stay free", unit.Count(int(d.FreeFiles), "file"), d.ReserveFiles)
	}
	return ""
}

// LinkKind is the kind of resource that a link gives access to.
type LinkKind string

// The kinds of links.
const (
	UploadPut   LinkKind = "put"     // uploads a file
	UploadGet   LinkKind = "get"     // an uploaded file
	ResultGet   LinkKind = "file"    // one file of a job's result
	ArchiveGet  LinkKind = "zip"     // a job's result as an archive
	PartArchive LinkKind = "partzip" // a batch's completed rows as an archive
)

// Link is what a signed URL grants: one operation on one resource until a deadline.
type Link struct {
	Kind        LinkKind
	ID          string    // of the upload or job
	File        int       // of ResultGet: index in the manifest, which never changes
	Inputs      bool      // of an archive: includes the input files
	Files       Selection // of a share's archive: the selected files; never set in signed links
	Filename    string    // suggested name for a download
	ContentType string    // of UploadPut: the only one accepted
	Holder      string    // ID of the requesting API key; its transfers share a limit
	Issued      time.Time // when the holder's access was verified; zero means now
	Expires     time.Time
}

// Download is an open file to send to a client. Only the bytes present when sending
// begins are sent.
type Download struct {
	Content  *os.File
	Filename string // name under which the client saves it
	ETag     string // quoted; weak if the content can change
	Holder   string // ID of the requesting API key; its transfers share a limit
}

// Manifest lists the files of a completed job: its result, log and record.
type Manifest struct {
	Files []ManifestFile `json:"files"` // sorted by Name
}

// ManifestFile describes one file of a result. Name is the name shown to clients; Path is
// its location relative to the job's directory.
type ManifestFile struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	CRC32  uint32 `json:"crc32"` // IEEE, as in zip
	SHA256 string `json:"sha256"`

	// Changed is when the file was last modified, in seconds since 1970.
	Changed int64 `json:"changed"`
}

// Find returns the index of the file with this name, or -1 if there is none.
func (m *Manifest) Find(name string) int {
	for i := range m.Files {
		if m.Files[i].Name == name {
			return i
		}
	}
	return -1
}

// ArchiveForm selects an archive of a job's result.
type ArchiveForm struct {
	Partial bool // only the completed rows of a batch
	Inputs  bool // includes the input files
	Files   Selection
}

// Selection selects files of a result by their paths. A path that ends with a slash
// selects everything below that folder. An empty Selection selects all files.
type Selection []string

// except begins the first element of a Selection if that is not a path but a pattern:
// files that match it must be selected by name.
const except = "//"

// WithoutRecords returns the selection without the records of the job, or of the rows of
// a batch, unless they are selected by name: they reveal who ran the job, where and how.
func (s Selection) WithoutRecords(j *Job) Selection {
	pattern := except + "job.json"
	if j.IsBatch() {
		pattern = except + "*/job.json"
	}
	return append(Selection{pattern}, s...)
}

// Has reports whether a file is selected.
func (s Selection) Has(name string) bool {
	if slices.Contains(s, name) {
		return true
	}
	if len(s) > 0 && strings.HasPrefix(s[0], except) {
		if unnamed, _ := path.Match(strings.TrimPrefix(s[0], except), name); unnamed {
			return false
		}
		s = s[1:]
	}
	return len(s) == 0 || slices.ContainsFunc(s, func(one string) bool { return strings.HasSuffix(one, "/") && strings.HasPrefix(name, one) })
}

// Archive describes the contents of an archive.
type Archive struct {
	Folders []Folder
	Inputs  []InputFile // sorted by name, each once
}

// Jobs returns the jobs whose files the archive contains. A job can occur several times.
func (a Archive) Jobs() (ids []JobID) {
	for _, f := range a.Folders {
		ids = append(ids, f.Job)
	}
	for _, f := range a.Inputs {
		if f.Job != "" {
			ids = append(ids, f.Job)
		}
	}
	return ids
}

// InputFile is an input as a file in an archive.
type InputFile struct {
	Name string
	Reference
	CRC32   uint32 // only for an upload; a manifest has CRC32 and Changed of a result file
	Changed int64  // when it was uploaded, in seconds since 1970
}

// Folder is a job's files in an archive, below Name if that is set.
type Folder struct {
	Name  string
	Job   JobID
	Files Selection // selects files by their names in the archive
}
