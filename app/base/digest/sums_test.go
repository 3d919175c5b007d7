package digest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestSumsAreReadBackAndKnownToSha256sum(t *testing.T) {
	dir := t.TempDir()
	want := map[string]string{}
	sums, err := CreateSums(filepath.Join(dir, "SHA256SUMS"))
	must.OK(t, err)
	for _, name := range []string{"plain", "two  spaces", `back\slash`, "line\nbreak", "a\rb", `\n`, "ünïcode"} {
		sum, size, err := New().Copy(t.Context(), filepath.Join(dir, name), strings.NewReader(name))
		must.OK(t, err)
		must.Equal(t, fmt.Sprintf("%q", name), size, int64(len(name)))
		must.OK(t, sums.Add(name, sum))
		want[name] = sum
	}
	digest, err := sums.Finish()
	must.OK(t, err)
	got, again, err := ReadSums(filepath.Join(dir, "SHA256SUMS"))
	must.OK(t, err)
	must.Equal(t, "sums", got, want)
	must.Equal(t, "digest", again, digest)
	c := exec.Command(must.Installed(t, "sha256sum"), "--check", "--strict", "--quiet", "SHA256SUMS")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
}

func TestSumsThatAreCutOffAreDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "SHA256SUMS")
	line := strings.Repeat("ab", 32) + "  a\n"
	for n := range len(line) {
		must.OK(t, os.WriteFile(path, []byte(line+line[:n]), 0o600))
		if _, _, err := ReadSums(path); (err == nil) != (n == 0) {
			t.Errorf("with %d bytes of another line: %v", n, err)
		}
	}
}

func FuzzLinesOfSumsStayInTheBackup(f *testing.F) {
	sum := strings.Repeat("ab", 32)
	for _, line := range []string{sum + "  data/jobs.db\n", `\` + sum + `  a\nb` + "\n", sum + "  ../x\n", sum + "  /etc\n", "\n", sum} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		path, sum, ok := readSum(line)
		if ok && (!filepath.IsLocal(path) || len(sum) != 64 || !strings.HasSuffix(line, "\n")) {
			t.Errorf("%q is accepted as %q and %q", line, path, sum)
		}
	})
}
