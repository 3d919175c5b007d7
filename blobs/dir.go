// Package blobs stores files on disk and serves them through signed links.
//
// It implements app.Blobs and the handler of /blobs/. It owns these files in the data
// directory:
//
//	secret                                 key ring that signs links, and revocations; mode 0600
//	uploads/<xx>/<fileId>.<generation>     body of one PUT; never changes
//	uploads/tmp/                           bodies being received, directories of TempDir
//	uploads/partial/<fileId>.<generation>  bytes received so far of resumable uploads
//	jobs/<id>/                             attempts, result and manifest.json of a job
//	trash/                                 removed jobs, until no download reads them
//
// <xx> is the random end of the ID. A file in uploads appears atomically, and counts only
// once the upload's record names its generation. CollectGarbage removes files left over
// by a crash; they are never reused.
package blobs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
	"molrun/app/base/durable"
	"molrun/app/base/fault"
	"molrun/app/base/limit"
	"molrun/blobs/link"
	"molrun/blobs/result"
)

// Names in the data directory.
const (
	uploadsDir = "uploads"
	tmpDir     = "uploads/tmp"
	partialDir = "uploads/partial"
	trashDir   = "trash"
)

// Options are the dependencies and limits of a Dir. The zero value of a limit
// means its default.
type Options struct {
	Now     func() time.Time // wall clock for the expiry of links and the age of orphans
	Secret  *link.Secret     // signs links
	Log     zerolog.Logger
	Reserve int64 // free-space threshold for uploads; default max(1 GiB, 5 % of disk)
	Streams int   // concurrent transfers, default 256; others get 503

	// StreamsPerHolder limits the concurrent transfers by links of one holder;
	// default half of Streams.
	StreamsPerHolder int
	Idle             time.Duration // how long a transfer can stall, default one minute

	// Partial is how long an unfinished resumable upload is kept after its last bytes
	// arrived; default one day. Clients are informed of this limit.
	Partial time.Duration
	// Rejected receives the reason why a request with a link failed. It can be nil.
	Rejected func(error)
	// Block is the maximum number of bytes of a resumable upload that a crash can lose;
	// default 8 MiB.
	Block int64
}

// Dir manages the files in the data directory. It is safe for concurrent use.
type Dir struct {
	path     string // absolute
	root     *os.Root
	tmp      *os.Root // tmpDir
	options  Options
	signer   *link.Signer
	jobs     *result.Jobs
	archives *result.Archives
	run      string // prefix of this process's temporary names

	transfers limit.Budget
	space     space

	shardMu sync.Mutex
	shards  map[string]bool // directories in uploads known to be durable

	removals removals
	holds    holds
}

var _ app.Blobs = (*Dir)(nil)

// Open opens the data directory, creating missing parts. It rejects a directory that
// other users can write to.
func Open(dir string, o Options) (*Dir, error) {
	if o.Secret == nil || o.Now == nil {
		return nil, errors.New("open files: missing secret or clock")
	}
	if o.Streams <= 0 {
		o.Streams = 256
	}
	if o.StreamsPerHolder <= 0 {
		o.StreamsPerHolder = max(1, o.Streams/2)
	}
	if o.Idle <= 0 {
		o.Idle = time.Minute
	}
	if o.Partial <= 0 {
		o.Partial = 24 * time.Hour
	}
	if o.Block <= 0 {
		o.Block = 8 << 20
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open files: %w", err)
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	if err := createDirs(root); err != nil {
		return nil, errors.Join(fmt.Errorf("lay out %s: %w", dir, err), root.Close())
	}
	tmp, err := root.OpenRoot(tmpDir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lay out %s: %w", dir, err), root.Close())
	}
	d := &Dir{
		path:    dir,
		root:    root,
		tmp:     tmp,
		options: o,
		signer:  link.NewSigner(dir, o.Secret, o.Now),
		run:     rand.Text()[:8],
		transfers: limit.Budget{
			All:        int64(o.Streams),
			Share:      int64(o.StreamsPerHolder),
			Spent:      fault.Errorf(fault.Unavailable, "Too many transfers are in progress; try again in a few seconds."),
			ShareSpent: fault.Errorf(fault.Unavailable, "Too many transfers with links of one API key are in progress; try again when some have finished."),
		},
		shards: make(map[string]bool),
		holds:  holds{counts: make(map[string]int), removed: make(map[string]bool)},
	}
	d.jobs = result.NewJobs(root, d.removeAll)
	d.archives = result.NewArchives(d.jobs, uploadName)
	return d, nil
}

// createDirs creates the directories and makes them inaccessible to all other users.
func createDirs(root *os.Root) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 {
		return fmt.Errorf("it is writable by others (mode %#o): run chmod 700", perm)
	}
	for _, name := range []string{uploadsDir, tmpDir, partialDir, result.JobsDir, trashDir} {
		if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := root.Stat(name)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory: move it away", name)
		}
		if info.Mode().Perm()&0o077 != 0 {
			if err := root.Chmod(name, 0o700); err != nil {
				return err
			}
		}
	}
	return errors.Join(durable.SyncDir(root, uploadsDir), durable.SyncDir(root, "."))
}

// Close closes the directory. All requests must have finished.
func (d *Dir) Close() error { return errors.Join(d.tmp.Close(), d.root.Close()) }

// TempDir creates an empty directory and returns its path. The caller removes it; if the
// caller cannot, CollectGarbage of a later process does.
func (d *Dir) TempDir() (path string, err error) {
	name := filepath.Join(tmpDir, d.run+"."+rand.Text())
	if err := d.root.Mkdir(name, 0o700); err != nil {
		return "", diskError("make a directory", err)
	}
	return filepath.Join(d.path, name), nil
}

// Link returns the signed path and query of a link.
func (d *Dir) Link(l app.Link) string { return d.signer.Sign(l) }

// RevokeLinks revokes all links issued to a holder. Transfers in progress continue.
func (d *Dir) RevokeLinks(holder string) error {
	return diskError("revoke links", d.signer.Revoke(holder))
}

// RotateSecret adds a key to the secret, signs with it from now on and returns its ID.
// Unexpired links remain valid.
func (d *Dir) RotateSecret() (kid string, err error) {
	kid, err = d.signer.Rotate()
	return kid, diskError("rotate secret", err)
}

// RotateSecretNow is RotateSecret, but invalidates all links.
func (d *Dir) RotateSecretNow() (kid string, err error) {
	kid, err = d.signer.RotateNow()
	return kid, diskError("rotate secret", err)
}

// UploadPath returns the path of an upload's bytes.
func (d *Dir) UploadPath(id app.UploadID, generation int) string {
	return filepath.Join(d.path, filepath.FromSlash(uploadName(id, generation)))
}

func uploadName(id app.UploadID, generation int) string {
	return path.Join(uploadsDir, shardOf(id), string(id)+"."+strconv.Itoa(generation))
}

// shardOf distributes uploads over at most 1,024 directories. Only the end of an ID is
// evenly distributed, because it begins with its time.
func shardOf(id app.UploadID) string { return string(id[max(0, len(id)-2):]) }

// JobDir returns the directory of a job: its attempts, result and manifest.
func (d *Dir) JobDir(id app.JobID) string {
	return filepath.Join(d.path, filepath.FromSlash(result.JobDir(id)))
}

// Manifest reads the list of a completed job's files. It returns NotFound if there is no
// manifest.
func (d *Dir) Manifest(id app.JobID) (*app.Manifest, error) {
	m, _, err := result.ReadManifest(d.root, id)
	return m, result.NotFound(err)
}

// WriteManifest stores the list of a job's files. It must be called after the files are
// in place and before the job is recorded as completed.
func (d *Dir) WriteManifest(id app.JobID, m *app.Manifest) error {
	return diskError("write manifest", result.WriteManifest(d.root, id, m))
}

// PutManifest is WriteManifest for callers that later sync the list together with all
// files of the disk.
func (d *Dir) PutManifest(id app.JobID, m *app.Manifest) error {
	return diskError("write manifest", result.PutManifest(d.root, id, m))
}

// ArchiveSize returns the length of an archive in bytes.
func (d *Dir) ArchiveSize(archive app.Archive) (int64, error) {
	a, err := d.archives.Open(archive)
	if err != nil {
		return 0, err
	}
	return a.Size(), nil
}
