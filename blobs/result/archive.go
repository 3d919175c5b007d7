package result

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"sync"

	"molrun/app"
)

// Archives opens archives of results and caches the layouts used last. A
// layout never becomes stale, because a completed job does not change.
type Archives struct {
	jobs *Jobs

	mu     sync.Mutex
	cached []cachedArchive // most recently used last
}

type cachedArchive struct {
	key     [sha256.Size]byte // digest of the folders
	archive *Archive
}

const maxCachedArchives = 16

// NewArchives returns the archives of these jobs.
func NewArchives(jobs *Jobs) *Archives { return &Archives{jobs: jobs} }

// Archive is a zip file that is stored nowhere: its headers are made of
// manifests, its bytes are read from the jobs' files. The same manifests give
// the same bytes, so a download can be resumed at any time, also after a
// restart.
//
// It takes about 150 bytes of memory for each folder and none for a file: a
// folder's manifest is read again when its part of the archive is sent. An
// archive of 10,000 jobs takes 1.5 MB and one manifest at a time.
type Archive struct {
	jobs  *Jobs
	parts []part
	end   zipEnd
	etag  string
}

// part is what one folder adds to an archive: its local headers and files, and
// later its records of the central directory.
type part struct {
	folder  app.Folder
	start   int64
	size    int64
	central int64 // length of its records
	entries int
	digest  [sha256.Size]byte // of its manifest
}

// Open returns the archive of these folders, in this order.
func (a *Archives) Open(folders []app.Folder) (*Archive, error) {
	key := foldersKey(folders)
	if archive := a.get(key); archive != nil {
		return archive, nil
	}
	archive, err := layOut(a.jobs, folders)
	if err != nil {
		return nil, fmt.Errorf("lay out archive: %w", err)
	}
	a.put(key, archive)
	return archive, nil
}

func foldersKey(folders []app.Folder) (key [sha256.Size]byte) {
	digest := sha256.New()
	for _, f := range folders {
		fmt.Fprintf(digest, "%q %s\n", f.Name, f.Job)
	}
	digest.Sum(key[:0])
	return key
}

func (a *Archives) get(key [sha256.Size]byte) *Archive {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, c := range a.cached {
		if c.key == key {
			a.cached = append(append(a.cached[:i:i], a.cached[i+1:]...), c)
			return c.archive
		}
	}
	return nil
}

func (a *Archives) put(key [sha256.Size]byte, archive *Archive) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.cached) == maxCachedArchives {
		a.cached = a.cached[1:]
	}
	a.cached = append(a.cached[:len(a.cached):len(a.cached)], cachedArchive{key, archive})
}

// layOut reads every manifest once and assigns each folder its place.
func layOut(jobs *Jobs, folders []app.Folder) (*Archive, error) {
	a := &Archive{jobs: jobs, parts: make([]part, 0, len(folders))}
	digest := sha256.New()
	for _, f := range folders {
		m, data, err := jobs.manifest(f.Job)
		if err != nil {
			return nil, NotFound(err)
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

// measure adds up the lengths of what the manifest's files need.
func (p *part) measure(m *app.Manifest) error {
	if p.folder.Name != "" && !safeName(p.folder.Name) {
		return fmt.Errorf("the folder %q is not allowed in an archive", p.folder.Name)
	}
	if err := CheckManifest(m); err != nil {
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

// walk yields the manifest's files with their entries in the archive, in order.
func (p *part) walk(m *app.Manifest) iter.Seq2[*app.ManifestFile, *zipEntry] {
	return func(yield func(*app.ManifestFile, *zipEntry) bool) {
		prefix := p.folder.Name
		if prefix != "" {
			prefix += "/"
		}
		e := zipEntry{offset: p.start}
		for i := range m.Files {
			f := &m.Files[i]
			e.name, e.size, e.crc = prefix+f.Name, f.Size, f.CRC32
			if !yield(f, &e) {
				return
			}
			e.offset += e.localLen() + e.size
		}
	}
}

// Size returns the length of the archive in bytes.
func (a *Archive) Size() int64 { return a.end.start + a.end.size + a.end.length() }

// ETag returns the entity tag of the archive, with quotes.
func (a *Archive) ETag() string { return a.etag }
