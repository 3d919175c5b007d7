// Package blobs keeps files on disk and serves them by signed links.
//
// It implements app.Blobs and the handler of /blobs/. Within the data
// directory it owns:
//
//	secret                               the key ring that signs links, mode 0600
//	uploads/<xx>/<fileId>.<generation>   what arrived by one PUT; never changes
//	uploads/tmp/                         what is arriving
//	jobs/<id>/                           attempts, result and manifest.json of a job
//	trash/                               what is being removed
//
// <xx> is the random end of the id. A name in uploads appears whole or not at
// all, and counts only once the upload's record names its generation; what a
// crash leaves behind is removed by Sweep, never adopted.
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
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
)

// Names below the data directory.
const (
	uploadsDir = "uploads"
	tmpDir     = "uploads/tmp"
	jobsDir    = "jobs"
	trashDir   = "trash"
)

// Options are what a Dir needs besides its place. The zero value of a limit
// takes its default.
type Options struct {
	Now     func() time.Time // wall clock: expiry of links, age of what is swept
	Secret  *Secret          // signs links
	Log     zerolog.Logger
	Reserve int64 // bytes that uploads leave free; default 1 GiB or 5 % of the disk, whichever is more
	Streams int   // transfers at once, default 256; more are answered 503

	// StreamsPerHolder is how many of these may be by links of one holder;
	// default half of them.
	StreamsPerHolder int
	Idle             time.Duration // how long a transfer may stand still, default one minute
}

// Dir is the data directory's files. It is safe for concurrent use.
type Dir struct {
	path    string // absolute
	root    *os.Root
	options Options
	links   atomic.Pointer[links]
	run     string // begins the names of this process's temporary files

	shardMu sync.Mutex
	shards  map[string]bool // directories below uploads that are known to be durable

	rotating sync.Mutex // held while the secret is replaced
	holds    holds
	archives archiveCache
	buffers  sync.Pool // *[]byte of bufferSize
}

var _ app.Blobs = (*Dir)(nil)

// Open makes what is missing of the layout in the data directory and takes
// hold of it. It refuses a directory that others may write to.
func Open(dir string, o Options) (*Dir, error) {
	if o.Secret == nil || o.Now == nil {
		return nil, errors.New("open files: options lack the secret or the clock")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open files: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	if err := layOut(root); err != nil {
		return nil, errors.Join(fmt.Errorf("lay out %s: %w", dir, err), root.Close())
	}
	d := &Dir{
		path:    dir,
		root:    root,
		options: withDefaults(o),
		run:     rand.Text()[:8],
		shards:  make(map[string]bool),
	}
	d.links.Store(newLinks(o.Secret, o.Now))
	d.buffers.New = func() any { b := make([]byte, bufferSize); return &b }
	return d, nil
}

func withDefaults(o Options) Options {
	if o.Streams <= 0 {
		o.Streams = 256
	}
	if o.StreamsPerHolder <= 0 {
		o.StreamsPerHolder = max(1, o.Streams/2)
	}
	if o.Idle <= 0 {
		o.Idle = time.Minute
	}
	return o
}

// Close gives the directory back. Requests must have ended.
func (d *Dir) Close() error { return d.root.Close() }

// UploadPath gives where an upload's bytes lie.
func (d *Dir) UploadPath(id app.UploadID, generation int) string {
	return filepath.Join(d.path, filepath.FromSlash(uploadName(id, generation)))
}

// JobDir gives the directory of a job: its attempts, result and manifest.
func (d *Dir) JobDir(id app.JobID) string {
	return filepath.Join(d.path, jobsDir, string(id))
}

// Link gives the signed path and query of a link.
func (d *Dir) Link(l app.Link) string { return d.links.Load().sign(l) }

func uploadName(id app.UploadID, generation int) string {
	return path.Join(uploadsDir, shardOf(id), string(id)+"."+strconv.Itoa(generation))
}

// shardOf spreads uploads over at most 1,024 directories. An ID begins with
// its time, so only its end is spread evenly.
func shardOf(id app.UploadID) string { return string(id[max(0, len(id)-2):]) }

// layOut makes the directories and closes them to all others.
func layOut(root *os.Root) error {
	if err := refuseShared(root); err != nil {
		return err
	}
	for _, name := range []string{uploadsDir, tmpDir, jobsDir, trashDir} {
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
	return errors.Join(syncDir(root, uploadsDir), syncDir(root, "."))
}

func refuseShared(root *os.Root) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if perm := info.Mode().Perm(); perm&0o022 != 0 {
		return fmt.Errorf("others may write to it (mode %#o): run chmod 700", perm)
	}
	return nil
}

// syncDir makes the names in a directory durable.
func syncDir(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
