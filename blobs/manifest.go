package blobs

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"molrun/app"
	"molrun/app/fault"
)

const manifestName = "manifest.json"

// Manifest reads the list of a finished job's files, NotFound where there is
// none.
func (d *Dir) Manifest(id app.JobID) (*app.Manifest, error) {
	m, _, err := d.manifest(id)
	return m, err
}

// manifest gives the list and the bytes that it was read from.
func (d *Dir) manifest(id app.JobID) (*app.Manifest, []byte, error) {
	data, err := d.root.ReadFile(path.Join(jobsDir, string(id), manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fault.Errorf(fault.NotFound, "There is no result here: it was deleted or never made.")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read manifest: %w", err)
	}
	var m app.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, nil, fmt.Errorf("read manifest of job %s: %w", id, err)
	}
	return &m, data, nil
}

// WriteManifest stores the list of a job's files, whole or not at all. The
// files must be in place, for links and archives rely on it for ever: a
// manifest is written once, before its job is recorded as completed.
func (d *Dir) WriteManifest(id app.JobID, m *app.Manifest) error {
	if err := checkManifest(m); err != nil {
		return fmt.Errorf("write manifest of job %s: %w", id, err)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write manifest of job %s: %w", id, err)
	}
	if err := replaceFile(d.root, path.Join(jobsDir, string(id)), manifestName, data); err != nil {
		return diskError("write manifest", err)
	}
	return nil
}

// checkManifest refuses what an archive could not hold: names that lead out of
// the folder where they are unpacked, and names that occur twice.
func checkManifest(m *app.Manifest) error {
	for i, f := range m.Files {
		switch {
		case !safeName(f.Name):
			return fmt.Errorf("the name %q can't stand in an archive", f.Name)
		case !filepath.IsLocal(f.Path):
			return fmt.Errorf("the path %q leads out of the job's directory", f.Path)
		case f.Size < 0:
			return fmt.Errorf("%q has the size %d", f.Name, f.Size)
		case i > 0 && m.Files[i-1].Name >= f.Name:
			return fmt.Errorf("%q is out of order", f.Name)
		}
	}
	return nil
}

// safeName reports whether a name means the same file below any folder on
// every system: a backslash would lead elsewhere on some.
func safeName(name string) bool {
	return filepath.IsLocal(name) && path.Clean(name) == name && name != "." &&
		!strings.ContainsAny(name, "\\\x00") && utf8.ValidString(name) && len(name) <= maxZipName
}

// replaceFile writes a file beside its final name, makes it durable and only
// then gives it the name.
func replaceFile(root *os.Root, dir, name string, data []byte) error {
	tmp := path.Join(dir, "."+name+"."+rand.Text())
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = root.Rename(tmp, path.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, root.Remove(tmp))
	}
	return syncDir(root, dir)
}
