package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// curl runs curl with these arguments and returns the status and the body.
func (u user) curl(dir string, args ...string) (status, body string) {
	u.t.Helper()
	c := exec.CommandContext(u.t.Context(), "curl", append([]string{"--silent", "--show-error", "--write-out", "\n%{http_code}"}, args...)...)
	c.Dir = dir
	out, err := c.Output()
	must.OK(u.t, err)
	at := strings.LastIndex(string(out), "\n")
	return string(out[at+1:]), string(out[:at])
}

// TestFilesAreSentWithCurlAsPeopleTypeIt uploads a file with each of curl's options for
// it. Some label the file as a form, and the response then says what to type instead.
func TestFilesAreSentWithCurlAsPeopleTypeIt(t *testing.T) {
	t.Parallel()
	must.Installed(t, "curl")
	u := plain(t).user("lab", "ann@lab.example")
	dir := t.TempDir()
	const text = ">Hst5\nDSHAKRHHGYKRKFHEKHHSHRGY\n"
	must.OK(t, os.WriteFile(filepath.Join(dir, "a.fasta"), []byte(text), 0o600))
	for _, tt := range []struct {
		args   []string
		status string
		says   string
	}{
		{[]string{"-T", "a.fasta"}, "200", `"size":31`},
		{[]string{"-T", "a.fasta", "-H", "Content-Type: text/x-fasta"}, "200", `"size":31`},
		{[]string{"-T", "-", "-H", "Content-Type: text/x-fasta"}, "200", `"size":0`},
		{[]string{"-X", "PUT", "--data-binary", "@a.fasta"}, "403", "use -T FILE, which sends none, or add -H 'Content-Type:'"},
		{[]string{"-X", "PUT", "-d", "@a.fasta"}, "403", "Don't use -d, which drops the line breaks"},
		{[]string{"-X", "PUT", "--data-binary", "@a.fasta", "-H", "Content-Type:"}, "200", `"size":31`},
		{[]string{"-T", "a.fasta", "-H", "Content-Type: text/html"}, "403", "but the request has text/html; send the accepted type or omit the header."},
	} {
		status, body := u.curl(dir, append(tt.args, u.grant("a.fasta").UploadURL)...)
		if status != tt.status || !strings.Contains(body, tt.says) {
			t.Errorf("curl %q: status %s: %s; want %s and %s", tt.args, status, body, tt.status, tt.says)
		}
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "job.json"), []byte("{\"jobName\": \"typed\",\n \"type\": \"shell\", \"settings\": "+script("true")+"}\n"), 0o600))
	key := "x-api-key: " + u.key
	for _, tt := range []struct {
		args   []string
		status string
		says   string
	}{
		{[]string{"-d", "@job.json"}, "415", "with the header Content-Type: application/json"},
		{[]string{"--data-binary", "@job.json"}, "415", "with the header Content-Type: application/json"},
		{[]string{"-d", "@job.json", "-H", "Content-Type: application/json"}, "200", `"jobName":"typed"`},
		{[]string{"--json", "@job.json"}, "200", `"created":false`},
	} {
		status, body := u.curl(dir, append(tt.args, "-H", key, u.base+"/submit-job")...)
		if status != tt.status || !strings.Contains(body, tt.says) {
			t.Errorf("curl %q: status %s: %s; want %s and %s", tt.args, status, body, tt.status, tt.says)
		}
	}
}
