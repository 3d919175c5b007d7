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

// Blobs stores files and signs links to them. Package blobs implements it.
type Blobs interface {
	// Link returns the signed path and query of a link, without the base URL.
	Link(l Link) string
	// RevokeLinks ends all links that a holder has been issued.
	RevokeLinks(holder string) error
	// UploadPath returns the path of an upload's bytes.
	UploadPath(id UploadID, generation int) string
	// JobDir returns the directory of a job: its attempts, result and manifest.
	JobDir(id JobID) string
	// Manifest reads the manifest of a finished job, NotFound if there is none.
	Manifest(id JobID) (*Manifest, error)
	// ArchiveSize returns the length of an archive in bytes.
	ArchiveSize(a Archive) (int64, error)
	// Disk reports how full the disk is.
	Disk() (Disk, error)
	// JobSize returns the bytes of all files of a job, 0 if it has none.
	JobSize(id JobID) (int64, error)
	// RemoveUpload and RemoveJob free the disk at once, or when the last download
	// ends that has begun. Removing what is already gone is no error.
	RemoveUpload(id UploadID, generation int) error
	RemoveJob(id JobID) error
	// RemovePartial does the same for what has arrived of a file in parts.
	RemovePartial(id UploadID, generation int) error
}

// Disk is how full the disk of the data directory is.
type Disk struct {
	Size    int64 `json:"size"`    // bytes in all
	Free    int64 `json:"free"`    // of them, those that this process may still use
	Reserve int64 `json:"reserve"` // of these, those that uploads and new jobs leave alone

	// The same for files (inodes). Files is 0 if the file system sets no limit.
	Files        int64 `json:"files"`
	FreeFiles    int64 `json:"freeFiles"`
	ReserveFiles int64 `json:"reserveFiles"`
}

// Shortage says what is missing on the disk once that many more bytes are stored, ""
// if nothing.
func (d Disk) Shortage(more int64) string {
	switch {
	case d.Free-more < d.Reserve:
		return fmt.Sprintf("%s free, at least %s must stay free", unit.Bytes(d.Free), unit.Bytes(d.Reserve))
	case d.Files > 0 && d.FreeFiles < d.ReserveFiles:
		return fmt.Sprintf("%s more can be created, at least %d must stay free", unit.Count(int(d.FreeFiles), "file"), d.ReserveFiles)
	}
	return ""
}

// LinkKind says what a link leads to.
type LinkKind string

// The kinds of links.
const (
	UploadPut   LinkKind = "put"     // the bytes of an upload, to be sent
	UploadGet   LinkKind = "get"     // the bytes of an upload
	ResultGet   LinkKind = "file"    // one file of a job's result
	ArchiveGet  LinkKind = "zip"     // a job's result as an archive
	PartArchive LinkKind = "partzip" // a batch's completed rows as an archive
)

// Link is what a signed URL allows: one verb on one thing until a time.
type Link struct {
	Kind        LinkKind
	ID          string    // of the upload or job
	File        int       // of ResultGet: index in the manifest, which never changes
	Inputs      bool      // of an archive: it has the input files, too
	Files       Selection // of an archive of a share: what it has; no signed link has this
	Filename    string    // what a download is called
	ContentType string    // of UploadPut: the only one accepted
	Holder      string    // who asked for it, by the id of an API key; shares a bound on transfers
	Issued      time.Time // when the holder was known to be allowed; zero is now
	Expires     time.Time
}

// Download is an open file to send to a client, as long as it is then.
type Download struct {
	Content  *os.File
	Filename string // what it is saved as
	ETag     string // in quotes; a weak one if the content may change
	Holder   string // who asked for it, by the id of an API key; shares a bound on transfers
}

// Manifest lists the files of a completed job: its result, log and record.
type Manifest struct {
	Files []ManifestFile `json:"files"` // sorted by Name
}

// ManifestFile is one file. Name is what clients call it, Path is where it lies
// below the job's directory.
type ManifestFile struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	CRC32  uint32 `json:"crc32"` // IEEE, as in zip
	SHA256 string `json:"sha256"`

	// Changed is when the file was written last, in seconds since 1970.
	Changed int64 `json:"changed"`
}

// Find returns the index of the file with this name, -1 if there is none.
func (m *Manifest) Find(name string) int {
	for i := range m.Files {
		if m.Files[i].Name == name {
			return i
		}
	}
	return -1
}

// ArchiveForm is which archive of a job's result is meant.
type ArchiveForm struct {
	Partial bool // the completed rows of a batch
	Inputs  bool // with the input files
	Files   Selection
}

// Selection selects files of a result by their paths. One that ends with a slash
// selects what is below that folder. An empty Selection selects all.
type Selection []string

// except begins a first element of a Selection that is no path, but a pattern of those that must
// be named.
const except = "//"

// WithoutRecords returns the selection without records of the job, or of the rows of a batch,
// that it does not name: they reveal who had the job run, where and how.
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

// Archive is what an archive holds.
type Archive struct {
	Folders []Folder
	Inputs  []InputFile // sorted by name, each once
}

// Jobs lists the jobs whose files an archive is made of, some of them several times.
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

// InputFile is an input as a file of an archive.
type InputFile struct {
	Name string
	Reference
	CRC32   uint32 // of an upload; of a result's file, the manifest knows it and Changed
	Changed int64  // when it was uploaded, in seconds since 1970
}

// Folder is a job's files within an archive, below Name if that is set.
type Folder struct {
	Name  string
	Job   JobID
	Files Selection // of names within the archive
}
