package runner

import (
	"testing"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/test/must"
)

func TestUnseenDependsOnTheSandbox(t *testing.T) {
	t.Parallel()
	a, mistakes := algorithm.Parse("a.toml", []byte("format = 1\ntype = \"a\"\nversion = \"1\"\ncommand = [\"true\", \"/home/ann/fold.py\"]\n[sandbox]\nread = [\"/data/db/\"]\n"))
	if mistakes != nil {
		t.Fatal(mistakes)
	}
	j := &app.Job{ID: "01ABC"}
	for _, tt := range []struct {
		isolation, path string
		hint            bool
	}{
		{"bubblewrap", "/etc/fonts/xyz", false},
		{"bubblewrap", "/etc/xyz", true},
		{"bubblewrap", "/opt/app/conf", false},
		{"podman", "/opt/app/conf", true},
		{"bubblewrap", "/home/ann/fold.py", false},
		{"podman", "/home/ann/fold.py", true},
		{"bubblewrap", "/home/ann/other.py", true},
		{"bubblewrap+cgroup", "/data/dbs", true},
		{"podman+cgroup", "/usr/share/xyz", true},
		{"docker", "/etc/xyz", true},
		{"bubblewrap", "/data/db", false},
		{"bubblewrap", "/data/db/x", false},
		{"podman", "/tmp/x", false},
		{"bubblewrap", "/srv/molrun/jobs/01ABC/1/work/x", false},
		{"cgroup", "/etc/xyz", false},
		{"none", "/etc/xyz", false},
		{"", "/etc/xyz", false},
	} {
		if got := hiddenFileHint(j, &app.Outcome{Isolation: tt.isolation}, a, "cat: "+tt.path+": No such file or directory"); (got != "") != tt.hint {
			t.Errorf("%s in %q: %q", tt.path, tt.isolation, got)
		}
	}
	must.Equal(t, "of an unknown algorithm", hiddenFileHint(j, &app.Outcome{Isolation: "bubblewrap"}, nil, "cat: /etc/xyz: No such file or directory"), "")
}
