package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"molrun/app/base/durable"
	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
)

// defaultProfile is the name of the profile that is used if the user does not choose one.
const defaultProfile = "default"

// Profile is a service and the credentials to use it.
type Profile struct {
	Server string `json:"server"`          // such as https://lab.example:8443/molrun
	Key    string `json:"key"`             // an API key
	Trust  string `json:"trust,omitempty"` // PEM file of the service's certificate, if no trusted CA signed it
}

// parseKey returns the API key in text that the user supplied, without surrounding white
// space; "" means no key. from says where the text is from. Errors are KeyErrors and
// never contain the text.
func parseKey(text, from string) (string, error) {
	key := strings.TrimSpace(text)
	for _, c := range key {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return "", KeyError{fmt.Errorf("the API key %s has characters other than letters, digits and underscores; copy it again, from molrun_ to its end", from)}
		}
	}
	return key, nil
}

// ProfileFile is the content of the profiles file.
type ProfileFile struct {
	Current  string             `json:"current,omitempty"` // default profile
	Profiles map[string]Profile `json:"profiles"`
}

// profilesPath returns the path of the profiles file:
// $XDG_CONFIG_HOME/molrun/profiles.json or, by default, ~/.config/molrun/profiles.json.
func profilesPath(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "molrun", "profiles.json"), nil
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "molrun", "profiles.json"), nil
	}
	return "", errors.New("set HOME or XDG_CONFIG_HOME: profiles are saved there")
}

// openProfiles reads the profiles file at profilesPath.
func openProfiles(getenv func(string) string) (f ProfileFile, path string, err error) {
	if path, err = profilesPath(getenv); err != nil {
		return f, path, err
	}
	f, err = readProfiles(path)
	return f, path, err
}

// readProfiles reads the profiles file at path. If there is no file, it returns no
// profiles. It rejects a file that others can read, because it contains keys.
func readProfiles(path string) (f ProfileFile, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ProfileFile{Profiles: map[string]Profile{}}, nil
	}
	if err != nil {
		return f, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return f, fmt.Errorf("others can read the API keys in %s (mode %04o); run chmod 600 %[1]s, and replace the keys if the machine is shared", path, mode)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("%s is damaged (%w); delete it and run molrun login again", path, err)
	}
	if f.Profiles == nil {
		f.Profiles = map[string]Profile{}
	}
	return f, nil
}

// Write replaces the file at path.
func (f ProfileFile) Write(path string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return durable.Replace(root, filepath.Base(path), append(text, '\n'))
}

// Find returns the profile with that name, or the current one if name is empty. It
// returns a NotFound error if there is none.
func (f ProfileFile) Find(name string) (Profile, error) {
	if name == "" {
		name = f.Current
	}
	p, ok := f.Profiles[name]
	switch {
	case ok:
		return p, nil
	case name == "":
		return p, fault.Errorf(fault.NotFound, "no service is saved yet; run molrun login --server http://HOST:PORT")
	}
	names := slices.Sorted(maps.Keys(f.Profiles))
	hint := "; there are no profiles yet"
	if len(names) > 0 {
		hint = "; existing profiles: " + strings.Join(names, ", ")
	}
	if near := plaintext.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return p, fault.Errorf(fault.NotFound, "there is no profile %q%s", name, hint)
}
