package result

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"sync"

	"molrun/app"
	"molrun/app/base/fault"
)

// Archives opens archives of results and caches recently used layouts. A layout never
// becomes stale, because a completed job does not change.
type Archives struct {
	jobs   *Jobs
	upload func(app.UploadID, int) string

	mu     sync.Mutex
	cached []cachedArchive // most recently used last
}

type cachedArchive struct {
	key     [sha256.Size]byte // digest of the contents
	archive *Archive
}

const maxCachedArchives = 16

// NewArchives returns the archives of these jobs. upload returns the path of an upload's
// generation in the data directory.
func NewArchives(jobs *Jobs, upload func(app.UploadID, int) string) *Archives {
	return &Archives{jobs: jobs, upload: upload}
}

// Archive is a zip file that is never stored: its headers are generated from manifests,
// and its bytes are read from the jobs' files. The same manifests produce the same bytes,
// so a download can be resumed at any time, even after a restart.
//
// It uses about 150 bytes of memory per folder and none per file: a folder's manifest is
// read again when its part of the archive is sent. An archive of 10,000 jobs uses 1.5 MB
// plus one manifest at a time.
type Archive struct {
	jobs   *Jobs
	parts  []part
	inputs inputs
	end    zipEnd
	etag   string
}

// part is the contribution of one folder to an archive: its local headers and files, and
// later its records of the central directory.
type part struct {
	folder  app.Folder
	named   string // name of the folder in the archive
	start   int64
	size    int64
	central int64 // length of its central records
	entries int
	digest  [sha256.Size]byte // digest of its manifest
}

// Open returns the archive of the given folders, in order, and inputs.
func (a *Archives) Open(contents app.Archive) (*Archive, error) {
	key := keyOf(contents)
	if archive := a.get(key); archive != nil {
		return archive, nil
	}
	archive, err := a.layOut(contents)
	if err != nil {
		return nil, fmt.Errorf("lay out archive: %w", err)
	}
	a.put(key, archive)
	return archive, nil
}

func keyOf(contents app.Archive) (key [sha256.Size]byte) {
	digest := sha256.New()
	for _, f := range contents.Folders {
		fmt.Fprintf(digest, "%q %s %q\n", f.Name, f.Job, f.Files)
	}
	for _, f := range contents.Inputs {
		fmt.Fprintf(digest, "input %q %s %d %s %q\n", f.Name, f.Upload, f.Generation, f.Job, f.Path)
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

// layOut reads every manifest once and assigns each folder and input its position.
func (s *Archives) layOut(contents app.Archive) (*Archive, error) {
	a := &Archive{jobs: s.jobs, parts: make([]part, 0, len(contents.Folders))}
	a.inputs = inputs{jobs: s.jobs, upload: s.upload, files: slices.Clone(contents.Inputs), dirs: namedDirs(contents.Inputs)}
	digest := sha256.New()
	folders := map[string]bool{}
	for _, f := range contents.Folders {
		m, data, err := s.jobs.manifest(f.Job)
		if err != nil {
			return nil, NotFound(err)
		}
		p := part{folder: f, named: free(portable(f.Name), folders), start: a.end.start, digest: sha256.Sum256(data)}
		if err := p.measure(m); err != nil {
			return nil, fmt.Errorf("job %s: %w", f.Job, err)
		}
		if name := a.inputs.conflict(&p, m); name != "" {
			return nil, fault.List(fault.Field{
				Loc: []any{"body", "inputs"}, Type: "taken",
				Msg: fmt.Sprintf("the result's file %q collides with the inputs; request the archive without inputs", name),
			})
		}
		a.parts = append(a.parts, p)
		a.end.entries += int64(p.entries)
		a.end.start += p.size
		a.end.size += p.central
		fmt.Fprintf(digest, "%q %x\n", f.Name, p.digest)
		if len(f.Files) > 0 {
			fmt.Fprintf(digest, "only %q\n", f.Files)
		}
	}
	if err := a.inputs.layOut(a.end.start); err != nil {
		return nil, err
	}
	a.end.entries += int64(len(a.inputs.files))
	a.end.start += a.inputs.size
	a.end.size += a.inputs.central
	for _, f := range a.inputs.files {
		fmt.Fprintf(digest, "input %q %d %x %d\n", f.Name, f.Size, f.CRC32, f.Changed)
	}
	a.etag = `"` + hex.EncodeToString(digest.Sum(nil)[:16]) + `"`
	return a, nil
}

// measure adds up the sizes of the entries for the manifest's files.
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

// walk yields the selected files of the manifest with their archive entries, in order.
func (p *part) walk(m *app.Manifest) iter.Seq2[*app.ManifestFile, *zipEntry] {
	return func(yield func(*app.ManifestFile, *zipEntry) bool) {
		prefix, folder := p.folder.Name, p.named
		if prefix != "" {
			prefix, folder = prefix+"/", folder+"/"
		}
		names := portableNames(m)
		e := zipEntry{offset: p.start}
		for i := range m.Files {
			f := &m.Files[i]
			if !p.folder.Files.Has(prefix + f.Name) {
				continue
			}
			e.name, e.size, e.crc, e.changed = folder+names[i], f.Size, f.CRC32, f.Changed
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
