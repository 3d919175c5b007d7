package results

import (
	"testing"

	"molrun/app/test/must"
)

func TestMissingPath(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"cat: /etc/xyz: No such file or directory":                                "/etc/xyz",
		"/usr/bin/cat: /etc/xyz: No such file or directory":                       "/etc/xyz",
		"/etc/xyz: No such file or directory":                                     "/etc/xyz",
		"ERROR: Cannot open file '/home/ann/data.txt': No such file or directory": "/home/ann/data.txt",
		"FileNotFoundError: [Errno 2] No such file or directory: '/opt/db/a.hmm'": "/opt/db/a.hmm",
		"database (/data/x/../pdb70) does not exist.":                             "/data/pdb70",
		"File not found: /opt/params.":                                            "/opt/params",
		"cannot open input file=/srv/in.dat: no such file":                        "/srv/in.dat",
		"cat: in/a.txt: No such file or directory":                                "",
		"/opt/run.sh: line 3: division by zero":                                   "",
		"No such file or directory":                                               "",
		"nothing of /etc":                                                         "",
		"a/b/c: No such file or directory":                                        "",
		"open /: No such file":                                                    "",
	} {
		must.Equal(t, line, MissingPath(line), want)
	}
}
