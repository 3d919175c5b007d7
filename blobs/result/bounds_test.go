package result

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

// TestZip64BeginsWhereTheOldFieldsEnd checks the first values that the fields of 16
// and 32 bits cannot hold: all their bits set means "see the Zip64 record".
func TestZip64BeginsWhereTheOldFieldsEnd(t *testing.T) {
	for _, tt := range []struct {
		end zipEnd
		big bool
	}{
		{zipEnd{entries: maxUint16 - 1, start: maxUint32 - 1, size: maxUint32 - 1}, false},
		{zipEnd{entries: maxUint16}, true},
		{zipEnd{start: maxUint32}, true},
		{zipEnd{size: maxUint32}, true},
	} {
		if got := bytes.HasPrefix(tt.end.appendTo(nil), []byte("PK\x06\x06")); got != tt.big {
			t.Errorf("%+v: Zip64 is %v, want %v", tt.end, got, tt.big)
		}
	}
	for _, tt := range []struct {
		entry          zipEntry
		local, central int // bytes of the Zip64 field
		version        uint16
	}{
		{zipEntry{size: maxUint32 - 1, offset: maxUint32 - 1}, 0, 0, zipVersion},
		{zipEntry{size: maxUint32}, 20, 20, zip64Version},
		{zipEntry{offset: maxUint32}, 0, 12, zip64Version},
		{zipEntry{size: maxUint32, offset: maxUint32}, 20, 28, zip64Version},
	} {
		local, central := len(appendLocal(nil, &tt.entry))-localSize, len(appendCentral(nil, &tt.entry))-centralSize
		if local != tt.local || central != tt.central || tt.entry.version() != tt.version {
			t.Errorf("%+v: %d and %d bytes of Zip64, version %d; want %d, %d, %d", tt.entry, local, central, tt.entry.version(), tt.local, tt.central, tt.version)
		}
	}
}

// TestArchiveOfAChangedManifestIsNotSent changes what no file and no length of the
// archive shows.
func TestArchiveOfAChangedManifestIsNotSent(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	must.OK(t, err)
	t.Cleanup(func() { root.Close() })
	const id = app.JobID("job")
	must.OK(t, root.MkdirAll(JobDir(id), 0o700))
	must.OK(t, root.WriteFile(JobDir(id)+"/file", []byte("text"), 0o600))
	m := app.Manifest{Files: []app.ManifestFile{{Name: "a", Path: "file", Size: 4, CRC32: 1}}}
	must.OK(t, WriteManifest(root, id, &m))
	jobs := NewJobs(root, root.RemoveAll)
	folders := []app.Folder{{Job: id}}
	lease, err := jobs.Lease([]app.JobID{id})
	must.OK(t, err)
	defer lease.End()
	archive, err := NewArchives(jobs, nil).Open(app.Archive{Folders: folders})
	must.OK(t, err)
	whole, err := io.ReadAll(archive.Content(t.Context()))
	if err != nil || int64(len(whole)) != archive.Size() {
		t.Fatalf("%d bytes of %d: %v", len(whole), archive.Size(), err)
	}
	m.Files[0].CRC32 = 2
	must.OK(t, WriteManifest(root, id, &m))
	for name, from := range map[string]int64{"the files": 0, "the records at the end": archive.parts[0].size} {
		content := archive.Content(t.Context())
		if _, err := content.Seek(from, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if sent, err := content.SendTo(io.Discard, archive.Size()-from); err == nil {
			t.Errorf("%s: %d bytes are sent", name, sent)
		}
	}
}

func TestFilesThatDoNotFitInAnArchiveAreRefused(t *testing.T) {
	file := func(name string, size int64) app.ManifestFile {
		return app.ManifestFile{Name: name, Path: "file", Size: size}
	}
	long := strings.Repeat("n", maxZipName)
	for name, tt := range map[string]struct {
		folder string
		files  []app.ManifestFile
		fits   bool
	}{
		"longest name":                {"", []app.ManifestFile{file(long, 1)}, true},
		"longer by its folder":        {"row", []app.ManifestFile{file(long, 1)}, false},
		"longest name in a folder":    {"row", []app.ManifestFile{file(long[4:], 1)}, true},
		"too large a file":            {"", []app.ManifestFile{file("a", maxZipSize+1)}, false},
		"too large together":          {"", []app.ManifestFile{file("a", maxZipSize/2), file("b", maxZipSize/2)}, false},
		"large together, but it fits": {"", []app.ManifestFile{file("a", maxZipSize/2), file("b", maxZipSize/2-1000)}, true},
	} {
		p := part{folder: app.Folder{Name: tt.folder, Job: "job"}}
		if err := p.measure(&app.Manifest{Files: tt.files}); tt.fits != (err == nil) {
			t.Errorf("%s: error %v, want one: %v", name, err, !tt.fits)
		}
	}
}
