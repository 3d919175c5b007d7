package result

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/test/must"
)

// TestZip64BeginsWhereTheOldFieldsEnd checks the smallest values that the 16-bit and
// 32-bit fields cannot hold: all bits set means "see the Zip64 record".
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
		must.Equal(t, fmt.Sprintf("%+v has Zip64", tt.end), bytes.HasPrefix(tt.end.appendTo(nil), []byte("PK\x06\x06")), tt.big)
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
