// Package blobs keeps files on disk and serves them by signed links.
//
// It implements app.Blobs and the handler of /blobs/. It owns these files in
// the data directory:
//
//	secret                               the key ring that signs links and the revoked ones, mode 0600
//	uploads/<xx>/<fileId>.<generation>   the body of one PUT; never changes
//	uploads/tmp/                         bodies being received, directories of TempDir
//	uploads/partial/<fileId>.<generation> files that arrive in parts, as far as they are here
//	jobs/<id>/                           attempts, result and manifest.json of a job
//	trash/                               removed jobs, until no download reads them
//
// <xx> is the random end of the ID. A file in uploads appears whole or not at
// all, and counts only once the upload's record names its generation. Sweep
// removes what a crash leaves behind; nothing adopts it.
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
	Reserve int64 // bytes that uploads leave free; default 1 GiB or 5 % of the disk, whichever is more
	Streams int   // concurrent transfers, default 256; more are answered 503

	// StreamsPerHolder limits the concurrent transfers by links of one holder;
	// default half of Streams.
	StreamsPerHolder int
	Idle             time.Duration // how long a transfer may stall, default one minute

	// Partial is how long a file that arrives in parts stays after its last bytes, as
	// clients are told; default a day.
	Partial time.Duration
	// Refused receives the reason why a request with a link was answered with an error;
	// it can be nil.
	Refused func(error)
	// Block is how many bytes of such a file a crash may lose at most; default 8 MiB.
	Block int64
}

// Dir is the files of the data directory. It is safe for concurrent use.
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
	shards  map[string]bool // directories in uploads that are known to be durable

	removals removals
	holds    holds
}

var _ app.Blobs = (*Dir)(nil)

// Open creates what is missing in the data directory and opens it. It refuses
// a directory that others may write to.
func Open(dir string, o Options) (*Dir, error) {
	if o.Secret == nil || o.Now == nil {
		return nil, errors.New("open files: options lack the secret or the clock")
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
	if err := layOut(root); err != nil {
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

// layOut creates the directories and closes them to all other users.
func layOut(root *os.Root) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 {
		return fmt.Errorf("others may write to it (mode %#o): run chmod 700", perm)
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

// Close closes the directory. All requests must have ended.
func (d *Dir) Close() error { return errors.Join(d.tmp.Close(), d.root.Close()) }

// TempDir makes an empty directory and returns its path. The caller removes it; if
// it can't, Sweep of a later process does.
func (d *Dir) TempDir() (path string, err error) {
	name := filepath.Join(tmpDir, d.run+"."+rand.Text())
	if err := d.root.Mkdir(name, 0o700); err != nil {
		return "", diskError("make a directory", err)
	}
	return filepath.Join(d.path, name), nil
}

// Link returns the signed path and query of a link.
func (d *Dir) Link(l app.Link) string { return d.signer.Sign(l) }

// RevokeLinks ends all links that a holder has been issued. Transfers that have
// begun go on.
func (d *Dir) RevokeLinks(holder string) error {
	return diskError("revoke links", d.signer.Revoke(holder))
}

// RotateSecret adds a key to the secret, signs with it from now on and returns
// its ID. Links that are alive stay valid.
func (d *Dir) RotateSecret() (kid string, err error) {
	kid, err = d.signer.Rotate()
	return kid, diskError("rotate secret", err)
}

// RotateSecretNow is RotateSecret, and all links end.
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

// shardOf spreads uploads over at most 1,024 directories. Only the end of an
// ID is evenly distributed, because it begins with its time.
func shardOf(id app.UploadID) string { return string(id[max(0, len(id)-2):]) }

// JobDir returns the directory of a job: its attempts, result and manifest.
func (d *Dir) JobDir(id app.JobID) string {
	return filepath.Join(d.path, filepath.FromSlash(result.JobDir(id)))
}

// Manifest reads the list of a completed job's files. It returns NotFound if
// there is none.
func (d *Dir) Manifest(id app.JobID) (*app.Manifest, error) {
	m, _, err := result.ReadManifest(d.root, id)
	return m, result.NotFound(err)
}

// WriteManifest stores the list of a job's files, once they are in place and
// before the job is recorded as completed.
func (d *Dir) WriteManifest(id app.JobID, m *app.Manifest) error {
	return diskError("write manifest", result.WriteManifest(d.root, id, m))
}

// PutManifest is WriteManifest for who makes the list durable later, with all files of the
// disk.
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
