package remote

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/must"
)

func TestWrittenProfilesAreRead(t *testing.T) {
	path, err := profilesPath(func(name string) string { return map[string]string{"HOME": t.TempDir()}[name] })
	if err != nil || !strings.HasSuffix(path, "/.config/molrun/profiles.json") {
		t.Fatalf("path %q, %v", path, err)
	}
	f, err := readProfiles(path)
	must.OK(t, err)
	must.Fail(t, "no profile", must.Error2(f.Find("")), "molrun login")
	f.Profiles["lab"] = Profile{Server: "http://lab:8080", Key: "k"}
	f.Current = "lab"
	must.OK(t, f.Write(path))
	for name, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, mode)
		}
	}
	f, err = readProfiles(path)
	must.OK(t, err)
	for _, name := range []string{"", "lab"} {
		if p, err := f.Find(name); err != nil || p.Key != "k" {
			t.Errorf("%q: %+v, %v", name, p, err)
		}
	}
	must.Fail(t, "a mistyped name", must.Error2(f.Find("lap")), `did you mean "lab"?`)
}

func TestKeysAreTrimmed(t *testing.T) {
	for _, around := range []string{"", " ", "\t", "\r", "\n", " \t\r\n"} {
		if key, err := parseKey(around+"molrun_a_B_9"+around, "here"); key != "molrun_a_B_9" || err != nil {
			t.Errorf("%q around a key: %q, %v", around, key, err)
		}
	}
	if key, err := parseKey(" \n", "here"); key != "" || err != nil {
		t.Errorf("white space alone: %q, %v", key, err)
	}
	for _, inside := range []string{"\n", "\r\n", " ", "\x00", "\u200b", "é", "\xff", `"`, "-"} {
		key, err := parseKey("molrun_a"+inside+"b", "in $MOLRUN_KEY")
		if key != "" || !errors.As(err, new(KeyError)) || strings.Contains(err.Error(), "molrun_a") || !strings.Contains(err.Error(), "in $MOLRUN_KEY has characters other") {
			t.Errorf("%q inside a key: %q, %v", inside, key, err)
		}
	}
}

func TestUnusableProfilesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "profiles.json")
	for _, tt := range []struct {
		text string
		mode os.FileMode
		want string
	}{{"{}", 0o640, "chmod 600"}, {"{", 0o600, "damaged"}} {
		must.OK(t, os.WriteFile(path, []byte(tt.text), 0o600))
		must.OK(t, os.Chmod(path, tt.mode))
		must.Fail(t, fmt.Sprintf("%q with mode %v", tt.text, tt.mode), must.Error2(readProfiles(path)), tt.want)
	}
	if _, err := profilesPath(func(string) string { return "" }); err == nil {
		t.Error("a path without HOME")
	}
	if path, _ := profilesPath(func(name string) string { return map[string]string{"XDG_CONFIG_HOME": "/x"}[name] }); path != "/x/molrun/profiles.json" {
		t.Errorf("XDG_CONFIG_HOME: %s", path)
	}
}
