package sandbox

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestPatternsAreValid(t *testing.T) {
	for _, pattern := range slices.Concat(visibleEtc, secretNames) {
		if _, err := path.Match(pattern, "name"); err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

func TestOnlySettingsForProgramsAreSeen(t *testing.T) {
	dir := t.TempDir()
	for path, mode := range map[string]os.FileMode{
		"matplotlibrc": 0o644, "services": 0o640, "shadow": 0o644, "molrun/config.toml": 0o644, "passwd": 0o644, "machine-id": 0o644,
		"slurm/slurm.conf": 0o644, "java-21-openjdk/a": 0o644, "ssl/openssl.cnf": 0o644, "ssl/private/key.pem": 0o644,
		"ssl/certs/a.pem": 0o644, "static/fonts/a.conf": 0o644,
	} {
		path = filepath.Join(dir, path)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path, nil, mode))
	}
	must.OK(t, os.MkdirAll(filepath.Join(dir, "openmpi"), 0o750))
	for link, target := range map[string]string{
		"localtime": "/usr/share", "mtab": "/proc/mounts", "fonts": "static/fonts", "profile": "no-such-file",
	} {
		must.OK(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	look := func(read ...string) string {
		var all []string
		for a := etcArguments(dir, read); len(a) > 0; a = a[3:] {
			from := strings.TrimPrefix(a[1], dir+"/")
			if a[0] == "--symlink" {
				from = "to " + from
			}
			all = append(all, strings.TrimPrefix(a[2], "/etc/")+" "+from)
		}
		slices.Sort(all)
		return strings.Join(all, "\n")
	}
	const want = `fonts fonts
java-21-openjdk java-21-openjdk
localtime to /usr/share
matplotlibrc matplotlibrc
mtab to /proc/mounts
ssl/certs ssl/certs
ssl/openssl.cnf ssl/openssl.cnf`
	must.Equal(t, "what is seen", look(), want)
	replaced := strings.Replace(want, "to /usr/share", "localtime", 1)
	must.Equal(t, "what is seen where a link is listed", look("/etc/localtime"), replaced)
}

func TestShowsFollowsTheListOfSettings(t *testing.T) {
	for path, want := range map[string]bool{
		"/etc": true, "/etc/fonts/fonts.conf": true, "/etc/java-21-openjdk/a": true, "/etc/ssl/certs/a": true,
		"/etc/pam.d": false, "/etc/ssl": false, "/etc/ssl/private": false, "/etc/ssl/certsx": false, "/etc/fontsx": false,
		"/etc/passwd": false, "/usr/bin/env": true, "/opt/tool": true, "/home": false, "/etcetera": false,
	} {
		if IsVisible(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}

// TestEtcHoldsWhatIsListedAlone checks this machine's own /etc.
func TestEtcHoldsWhatIsListedAlone(t *testing.T) {
	o := confinement(t)
	for _, network := range []bool{false, true} {
		o.Allowed.Network = network
		made := []string{"/etc/passwd", "/etc/group", "/etc/hosts"}
		if network {
			made = append(made, "/etc/resolv.conf")
		}
		const list = "ls -d /etc/* /etc/.[!.]* /etc/ssl/* /etc/pki/* /etc/pki/tls/* 2>/dev/null; true"
		for at := range strings.Lines(inside(t, o, list)) {
			at = strings.TrimSuffix(at, "\n")
			if !IsVisible(at) && !slices.Contains(append(made, "/etc/ssl", "/etc/pki", "/etc/pki/tls"), at) {
				t.Errorf("network %v: %s is visible", network, at)
			}
		}
		inside(t, o, "ls /etc/nsswitch.conf /etc/ld.so.cache "+strings.Join(made, " "))
	}
	for _, path := range []string{"/etc/x", "/etc/passwd", "/etc/fonts/x"} {
		must.Equal(t, fmt.Sprintf("it may write %s", path), inside(t, o, "touch "+path+" 2>/dev/null || echo refused"), "refused\n")
	}
}

func TestHiddenSettingsStayHidden(t *testing.T) {
	o := confinement(t)
	o.Hide = []string{"/etc/nsswitch.conf", "/etc/fonts/conf.d", "/etc/alternatives"}
	const look = "cat /etc/nsswitch.conf 2>/dev/null; ls -A /etc/fonts/conf.d /etc/alternatives; ls /etc/fonts/fonts.conf"
	must.Equal(t, "what is seen", inside(t, o, look), "/etc/alternatives:\n\n/etc/fonts/conf.d:\n/etc/fonts/fonts.conf\n")
}

// TestWhatIsListedInEtcIsSeen lists entries that are otherwise hidden, and entries that
// are visible anyway.
func TestWhatIsListedInEtcIsSeen(t *testing.T) {
	o := confinement(t)
	for listed, text := range map[string]string{"/etc/pam.d/other": "pam", "/etc/host.conf": "multi", "/etc/localtime": "TZif"} {
		o.Allowed.Read = []string{listed}
		out := inside(t, o, "cat "+listed+"; ls -d /etc/nsswitch.conf /etc/shadow /etc/pam.d/login 2>/dev/null; true")
		if !strings.Contains(out, text) || !strings.HasSuffix(out, "/etc/nsswitch.conf\n") {
			t.Errorf("%s is listed, but the program sees %s", listed, out)
		}
	}
}
