package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestSettingsThatNotEverybodyMayReadStayOutside(t *testing.T) {
	dir := t.TempDir()
	for path, mode := range map[string]os.FileMode{
		"matplotlibrc": 0o644, "shadow": 0o644, "token": 0o640, "molrun.toml": 0o644, "host.key": 0o644, "passwd": 0o644,
		"fonts/conf/a.conf": 0o644, "ssl/openssl.cnf": 0o644, "ssl/private/key.pem": 0o644, "ssl/certs/a.pem": 0o644, "app/a": 0o644, "app/b": 0o600,
	} {
		path = filepath.Join(dir, path)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path, nil, mode))
	}
	for link, target := range map[string]string{"inside": "fonts/conf/a.conf", "outside": "/var/secret", "secret": "shadow"} {
		must.OK(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	s := settings{links: []string{dir}}
	var all []string
	for _, each := range s.below(dir, madeInside, mostLevels) {
		text := strings.TrimPrefix(each.path, dir+"/")
		if each.target != "" {
			text += " to " + each.target
		}
		all = append(all, text)
	}
	got := strings.Join(all, ", ")
	const want = "app/a, fonts, inside to fonts/conf/a.conf, matplotlibrc, ssl/certs, ssl/openssl.cnf"
	if got != want {
		t.Errorf("seen inside: %s\nwant %s", got, want)
	}
}
