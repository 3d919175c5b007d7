package blobs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"sync"

	"molrun/app"
)

// archive is a zip file that lies nowhere: headers made of manifests, bytes
// taken from the files. The same manifests give the same bytes, so a download
// can be resumed, also after a restart or on another day.
//
// It keeps some 150 bytes for each folder and nothing for each file: a
// folder's manifest is read again when its part of the archive is sent. An
// archive of 10,000 jobs needs 1.5 MB, and one manifest at a time.
type archive struct {
	parts []part
	end   zipEnd
	etag  string
}

// part is what one folder adds to an archive: local headers and files in one
// stretch, records of the central directory in another.
type part struct {
	folder  app.Folder
	start   int64
	size    int64
	central int64 // length of its records
	entries int
	digest  [sha256.Size]byte // of its manifest
}

// size gives the length of the whole archive.
func (a *archive) size() int64 { return a.end.start + a.end.size + a.end.length() }

// ArchiveSize gives the length of the archive of these folders in bytes.
func (d *Dir) ArchiveSize(folders []app.Folder) (int64, error) {
	a, err := d.archive(folders)
	if err != nil {
		return 0, err
	}
	return a.size(), nil
}

// archive lays the folders out in the order given. It reads every manifest
// once; then the layout is at hand for the parts of a resumed download.
func (d *Dir) archive(folders []app.Folder) (*archive, error) {
	key := foldersKey(folders)
	if a := d.archives.get(key); a != nil {
		return a, nil
	}
	a, err := d.newArchive(folders)
	if err != nil {
		return nil, fmt.Errorf("lay out archive: %w", err)
	}
	d.archives.put(key, a)
	return a, nil
}

func (d *Dir) newArchive(folders []app.Folder) (*archive, error) {
	a := &archive{parts: make([]part, 0, len(folders))}
	digest := sha256.New()
	for _, f := range folders {
		m, data, err := d.manifest(f.Job)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", f.Job, err)
		}
		p := part{folder: f, start: a.end.start, digest: sha256.Sum256(data)}
		if err := p.measure(m); err != nil {
			return nil, fmt.Errorf("job %s: %w", f.Job, err)
		}
		a.parts = append(a.parts, p)
		a.end.entries += int64(p.entries)
		a.end.start += p.size
		a.end.size += p.central
		fmt.Fprintf(digest, "%q %x\n", f.Name, p.digest)
	}
	a.etag = `"` + hex.EncodeToString(digest.Sum(nil)[:16]) + `"`
	return a, nil
}

// measure sums up what the manifest's files need.
func (p *part) measure(m *app.Manifest) error {
	if p.folder.Name != "" && !safeName(p.folder.Name) {
		return fmt.Errorf("the folder %q can't stand in an archive", p.folder.Name)
	}
	if err := checkManifest(m); err != nil {
		return err
	}
	for _, e := range p.walk(m) {
		p.size += e.localLen() + e.size
		p.central += e.centralLen()
		p.entries++
		if len(e.name) > maxZipName || e.size > maxZipSize || p.start+p.size > maxZipSize {
			return fmt.Errorf("the file %q does not fit in an archive", e.name)
		}
	}
	return nil
}

// walk gives the manifest's files with their places in the archive, in order.
func (p *part) walk(m *app.Manifest) iter.Seq2[*app.ManifestFile, *zipEntry] {
	return func(yield func(*app.ManifestFile, *zipEntry) bool) {
		e := zipEntry{offset: p.start}
		for i := range m.Files {
			f := &m.Files[i]
			e.name, e.size, e.crc = p.prefix()+f.Name, f.Size, f.CRC32
			if !yield(f, &e) {
				return
			}
			e.offset += e.localLen() + e.size
		}
	}
}

func (p *part) prefix() string {
	if p.folder.Name == "" {
		return ""
	}
	return p.folder.Name + "/"
}

// archiveCache keeps the layouts used last. A layout never goes stale: it is
// made of jobs that are completed, and those do not change.
type archiveCache struct {
	mu      sync.Mutex
	entries []cachedArchive // most recently used last
}

type cachedArchive struct {
	key     [sha256.Size]byte
	archive *archive
}

const maxCachedArchives = 16

func (c *archiveCache) get(key [sha256.Size]byte) *archive {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range c.entries {
		if e.key == key {
			c.entries = append(append(c.entries[:i:i], c.entries[i+1:]...), e)
			return e.archive
		}
	}
	return nil
}

func (c *archiveCache) put(key [sha256.Size]byte, a *archive) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) == maxCachedArchives {
		c.entries = c.entries[1:]
	}
	c.entries = append(c.entries[:len(c.entries):len(c.entries)], cachedArchive{key, a})
}

func foldersKey(folders []app.Folder) (key [sha256.Size]byte) {
	digest := sha256.New()
	for _, f := range folders {
		fmt.Fprintf(digest, "%q %s\n", f.Name, f.Job)
	}
	digest.Sum(key[:0])
	return key
}
