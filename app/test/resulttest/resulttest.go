// Package resulttest checks results in tests.
package resulttest

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"molrun/app"
)

// Read returns the content of a job's files by name. The test fails if a file
// is not as the manifest says, or the manifest is not sorted.
func Read(t testing.TB, jobDir string, m *app.Manifest) map[string]string {
	t.Helper()
	content := map[string]string{}
	for i, f := range m.Files {
		data, err := os.ReadFile(filepath.Join(jobDir, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if f.Size != int64(len(data)) || f.SHA256 != hex.EncodeToString(sum[:]) || f.CRC32 != crc32.ChecksumIEEE(data) {
			t.Errorf("%s: the manifest says %+v, the file has %d bytes", f.Name, f, len(data))
		}
		if i > 0 && m.Files[i-1].Name >= f.Name {
			t.Errorf("%q stands behind %q", f.Name, m.Files[i-1].Name)
		}
		content[f.Name] = string(data)
	}
	return content
}
