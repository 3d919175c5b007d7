package result

import (
	"fmt"
	"iter"
	"path"
	"strings"

	"molrun/app"
)

// inputs is the contribution of input files to an archive, after all folders. It uses
// about 300 bytes of memory per file.
type inputs struct {
	jobs    *Jobs
	upload  func(app.UploadID, int) string // path of a generation in the data directory
	files   []app.InputFile
	dirs    map[string]bool // directories of the inputs; only set during layout
	start   int64
	size    int64
	central int64 // length of the central directory records
}

// layOut assigns the inputs their positions, and determines the CRC-32 of those that are
// results of jobs.
func (in *inputs) layOut(start int64) error {
	if err := in.readSums(); err != nil {
		return err
	}
	in.start, in.dirs = start, nil
	for f, e := range in.walk() {
		in.size += e.localLen() + e.size
		in.central += e.centralLen()
		if !safeName(e.name) || e.size < 0 || e.size > maxZipSize || in.start+in.size > maxZipSize {
			return fmt.Errorf("the input %q does not fit in an archive", f.Name)
		}
	}
	return nil
}

// readSums reads the manifest of each job once.
func (in *inputs) readSums() error {
	wanted := map[app.JobID]map[string][]*app.InputFile{} // inputs by job and path
	for i := range in.files {
		f := &in.files[i]
		if f.Job == "" {
			continue
		}
		if wanted[f.Job] == nil {
			wanted[f.Job] = map[string][]*app.InputFile{}
		}
		wanted[f.Job][f.Path] = append(wanted[f.Job][f.Path], f)
	}
	for id, files := range wanted {
		m, _, err := in.jobs.manifest(id)
		if err != nil {
			return NotFound(err)
		}
		for _, listed := range m.Files {
			for _, f := range files[listed.Path] {
				f.CRC32, f.Size, f.Changed = listed.CRC32, listed.Size, listed.Changed
			}
			delete(files, listed.Path)
		}
		if len(files) > 0 {
			return fmt.Errorf("the manifest of job %s is missing an input of another job", id)
		}
	}
	return nil
}

// walk yields the inputs with their archive entries, in order.
func (in *inputs) walk() iter.Seq2[*app.InputFile, *zipEntry] {
	return func(yield func(*app.InputFile, *zipEntry) bool) {
		e := zipEntry{offset: in.start}
		for i := range in.files {
			f := &in.files[i]
			e.name, e.size, e.crc, e.changed = f.Name, f.Size, f.CRC32, f.Changed
			if !yield(f, &e) {
				return
			}
			e.offset += e.localLen() + e.size
		}
	}
}

// conflict returns a file of a folder that collides with the inputs, or "" if there is
// none.
func (in *inputs) conflict(p *part, m *app.Manifest) string {
	if len(in.files) == 0 {
		return ""
	}
	for _, e := range p.walk(m) {
		parts := strings.SplitN(e.name, "/", 3)
		if in.dirs[strings.Join(parts[:min(2, len(parts))], "/")] {
			return e.name
		}
	}
	return ""
}

// namedDirs returns the directories of the inputs: inputs, and one for each digest.
func namedDirs(files []app.InputFile) map[string]bool {
	dirs := map[string]bool{}
	for _, f := range files {
		dirs[path.Dir(f.Name)], dirs[path.Dir(path.Dir(f.Name))] = true, true
	}
	return dirs
}

// sendFiles sends the inputs' local headers and bytes.
func (in *inputs) sendFiles(w *window) error {
	if w.skip(in.size) {
		return nil
	}
	var header []byte
	for f, e := range in.walk() {
		if w.skip(e.localLen() + e.size) {
			continue
		}
		header = appendLocal(header[:0], e)
		if err := w.write(header); err != nil {
			return err
		}
		if err := in.send(f, w); err != nil {
			return fmt.Errorf("input %s: %w", f.Name, err)
		}
	}
	return nil
}

func (in *inputs) send(f *app.InputFile, w *window) error {
	if f.Job == "" {
		return w.file(in.jobs.root, &app.ManifestFile{Path: in.upload(f.Upload, f.Generation), Size: f.Size})
	}
	dir, err := in.jobs.Open(f.Job)
	if err != nil {
		return err
	}
	defer dir.Close()
	return w.file(dir, &app.ManifestFile{Path: f.Path, Size: f.Size})
}

// sendRecords sends the inputs' records of the central directory.
func (in *inputs) sendRecords(w *window) error {
	if w.skip(in.central) {
		return nil
	}
	var record []byte
	for _, e := range in.walk() {
		record = appendCentral(record[:0], e)
		if err := w.write(record); err != nil {
			return err
		}
	}
	return w.ctx.Err()
}
