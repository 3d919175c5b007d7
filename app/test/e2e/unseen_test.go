package e2e

import (
	"strings"
	"testing"
)

// opensFile is an algorithm that opens a file named in its settings. Users can name files
// that programs cannot see, such as a service's configuration.
const opensFile = `format = 1
type = "opens"
version = "1"
command = ["cat", "{settings.path}"]

[[parameters]]
name = "path"
type = "string"
default = "/etc/pam.d/other"

[sandbox]
read = ["/var/lib"]

[example]
settings = { path = "/etc/pam.d/other" }
`

// The message for a hidden file is the same as for a missing one.
func TestMissingFileMayBeUnseen(t *testing.T) {
	t.Parallel()
	s := plain(t)
	if !s.sandboxed() {
		t.Skip("this machine has no sandbox")
	}
	u := s.user("lab", "ann@lab.example")
	const hint = " Programs can access only the job's files and the paths listed in their algorithm file: if PATH is yours, upload it and name it in a setting; an administrator can list it under [sandbox]."
	said := func(name, path string) string {
		u.submit(name, "opens", `{"path":"`+path+`"}`)
		r := u.finished(name)
		if r.Failure == nil {
			t.Fatalf("%s: %+v", path, r)
		}
		return strings.ReplaceAll(r.Failure.Message, path, "PATH")
	}
	there, absent := said("there", "/etc/pam.d/other"), said("absent", "/etc/pam.d/other.none")
	if there != absent || !strings.HasSuffix(there, hint) {
		t.Errorf("of a file that is there: %s\nof one that is not: %s", there, absent)
	}
	for name, path := range map[string]string{"listed": "/var/lib/none", "system": "/usr/share/none", "own": "none.txt", "temporary": "/tmp/none"} {
		if got := said(name, path); strings.Contains(got, "under [sandbox]") || !strings.Contains(got, "No such file") {
			t.Errorf("%s: %s", path, got)
		}
	}
}
