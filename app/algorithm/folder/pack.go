package folder

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"molrun/app/base/digest"
)

// manifestName is the last member of an archive.
const manifestName = "MANIFEST.json"

// format is the version of the archive format. Other versions are rejected.
const format = 1

// Part is a file, or a folder with all files below it.
type Part struct {
	Name string // path in the archive
	From fs.FS
	Root string // path in From; "." for all of it
}

// manifest lists the files of an archive as they were read.
type manifest struct {
	Format int     `json:"format"`
	Files  []entry `json:"files"`
}

// entry is a file of an archive.
type entry struct {
	Name       string `json:"name"`
	Size       int64  `json:"size"`
	SHA256     string `json:"sha256"`
	Executable bool   `json:"executable,omitempty"`
}

// WriteArchive writes an archive of the parts. It returns the total size of their files
// in bytes.
func WriteArchive(ctx context.Context, w io.Writer, parts []Part) (total int64, err error) {
	t, d := tar.NewWriter(w), digest.New()
	m := manifest{Format: format}
	for _, p := range parts {
		err := fs.WalkDir(p.From, p.Root, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			f, err := addFile(ctx, d, t, p, name)
			m.Files = append(m.Files, f)
			total += f.Size
			return err
		})
		if err != nil {
			return total, err
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return total, err
	}
	if err := t.WriteHeader(&tar.Header{Name: manifestName, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
		return total, err
	}
	if _, err := t.Write(text); err != nil {
		return total, err
	}
	return total, t.Close()
}

// addFile writes a file of a part.
func addFile(ctx context.Context, d *digest.Digester, t *tar.Writer, p Part, name string) (e entry, err error) {
	info, err := fs.Stat(p.From, name) // follows links
	if err != nil {
		return e, err
	}
	if !info.Mode().IsRegular() {
		return e, fmt.Errorf("%s of %s is not a regular file or a link to one: remove it, or declare its folder as a separate asset", name, p.Name)
	}
	in, err := p.From.Open(name)
	if err != nil {
		return e, err
	}
	defer in.Close() // read-only
	e = entry{Name: p.Name, Size: info.Size(), Executable: info.Mode()&0o111 != 0}
	if name != p.Root {
		e.Name = path.Join(p.Name, strings.TrimPrefix(strings.TrimPrefix(name, p.Root), "/"))
	}
	mode := int64(0o644)
	if e.Executable {
		mode = 0o755
	}
	if err := t.WriteHeader(&tar.Header{Name: e.Name, Mode: mode, Size: e.Size, Typeflag: tar.TypeReg}); err != nil {
		return e, err
	}
	sum, n, err := d.Stream(ctx, t, io.LimitReader(in, e.Size))
	if err == nil && n != e.Size {
		err = fmt.Errorf("%s was truncated while being read", name)
	}
	e.SHA256 = sum
	return e, err
}

// checkName rejects names that could lead out of a part, and names reserved for molrun.
func checkName(name string) error {
	if !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") || len(name) > 1000 {
		return fmt.Errorf("the archive has a file named %.200q, which is not a valid path", name)
	}
	for _, piece := range strings.Split(name, "/") {
		if strings.HasPrefix(piece, ".molrun-") {
			return fmt.Errorf("the archive has a file named %.200q, a name reserved for molrun", name)
		}
	}
	return nil
}

// readManifest reads the last member and checks its format.
func readManifest(r io.Reader) (m manifest, err error) {
	d := json.NewDecoder(io.LimitReader(r, 64<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("the list of the archive can't be read: %w", err)
	}
	if m.Format != format {
		return m, fmt.Errorf("the archive has format %d, but this version of molrun reads %d: upgrade molrun", m.Format, format)
	}
	return m, nil
}

// errNoManifest is the error for an archive that ends too early.
var errNoManifest = errors.New("the archive is truncated: its manifest is missing. Copy it again")
