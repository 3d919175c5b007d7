// Package result reads and writes the downloadable files of a completed job: the files
// listed in its manifest, either individually or together as a zip archive generated
// while it is sent.
package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"molrun/app"
	"molrun/app/base/durable"
	"molrun/app/base/fault"
)

// JobsDir is the directory of all jobs in the data directory.
const JobsDir = "jobs"

const manifestName = "manifest.json" // name in the job directory

// JobDir returns the directory of a job in the data directory.
func JobDir(id app.JobID) string { return path.Join(JobsDir, string(id)) }

// ManifestName returns the path of a job's manifest in the data directory.
func ManifestName(id app.JobID) string { return path.Join(JobDir(id), manifestName) }

// WriteManifest atomically stores the list of a job's files. The files must be in place:
// links and archives rely on a manifest for as long as the job exists. It is written
// once, before the job is recorded as completed.
func WriteManifest(root *os.Root, id app.JobID, m *app.Manifest) error {
	return writeManifest(root, id, m, durable.Replace)
}

// PutManifest is WriteManifest without syncing the list: the caller does so before the
// job is recorded as completed.
func PutManifest(root *os.Root, id app.JobID, m *app.Manifest) error {
	return writeManifest(root, id, m, durable.Put)
}

func writeManifest(root *os.Root, id app.JobID, m *app.Manifest, write func(*os.Root, string, []byte) error) error {
	if err := CheckManifest(m); err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	return write(root, ManifestName(id), data)
}

// CheckManifest rejects a manifest that cannot be archived because a name occurs twice or
// escapes the directory in which the archive is extracted.
func CheckManifest(m *app.Manifest) error {
	for i, f := range m.Files {
		switch {
		case !safeName(f.Name):
			return fmt.Errorf("the name %q is not allowed in an archive", f.Name)
		case !filepath.IsLocal(f.Path):
			return fmt.Errorf("the path %q is outside the job's directory", f.Path)
		case f.Size < 0:
			return fmt.Errorf("%q has the size %d", f.Name, f.Size)
		case i > 0 && m.Files[i-1].Name >= f.Name:
			return fmt.Errorf("%q is out of order", f.Name)
		}
	}
	return nil
}

// safeName reports whether a name denotes the same file in any directory on every system.
// On some systems a backslash separates directories.
func safeName(name string) bool {
	return filepath.IsLocal(name) && path.Clean(name) == name && name != "." &&
		!strings.ContainsAny(name, "\\\x00") && utf8.ValidString(name) && len(name) <= maxZipName
}

// ReadManifest returns the list of a completed job's files and its encoded form.
func ReadManifest(root *os.Root, id app.JobID) (*app.Manifest, []byte, error) {
	data, err := root.ReadFile(ManifestName(id))
	return decodeManifest(id, data, err)
}

// Manifest is ReadManifest for a job directory that Open has opened.
func Manifest(dir *os.Root, id app.JobID) (*app.Manifest, []byte, error) {
	data, err := dir.ReadFile(manifestName)
	return decodeManifest(id, data, err)
}

func decodeManifest(id app.JobID, data []byte, err error) (*app.Manifest, []byte, error) {
	if err != nil {
		return nil, nil, fmt.Errorf("read manifest of job %s: %w", id, err)
	}
	var m app.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, nil, fmt.Errorf("read manifest of job %s: %w", id, err)
	}
	return &m, data, nil
}

// NotFound converts the error of a missing manifest to one that users understand. It
// returns any other error unchanged.
func NotFound(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Errorf(fault.NotFound, "There is no result: it was deleted or never created.")
	}
	return err
}

// OpenFile opens a file of a result if its size matches the manifest. dir is the job's
// directory, from which symbolic links cannot escape. OpenFile does not block on a pipe.
func OpenFile(dir *os.Root, mf *app.ManifestFile) (*os.File, error) {
	f, err := dir.OpenFile(mf.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() != mf.Size) {
		err = fmt.Errorf("%s has %d bytes, but the manifest says %d", mf.Path, info.Size(), mf.Size)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
