package e2e

import (
	"strings"
	"testing"
)

// opensFile is an algorithm that opens what it is told to open, such as a setting of a
// service, which programs do not see.
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

// TestMissingFileMayBeUnseen compares what users are told of a file that is there with what
// they are told of one that is not: the same.
func TestMissingFileMayBeUnseen(t *testing.T) {
	t.Parallel()
	s := plain(t)
	if !s.sandboxed() {
		t.Skip("this machine has no sandbox")
	}
	u := s.user("lab", "ann@lab.example")
	const hint = " Programs see only the job's files and what their algorithm file lists: if PATH is yours, upload it and name it in a setting; an administrator can list it under [sandbox]."
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
