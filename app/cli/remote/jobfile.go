package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/pelletier/go-toml/v2"

	"molrun/app/base/plaintext"
	"molrun/app/client"
)

// jobFile describes a job, or the settings that the jobs of a batch share.
type jobFile struct {
	Name     string              `json:"jobName,omitempty"`
	Type     string              `json:"type,omitempty"`
	Version  string              `json:"version,omitempty"`
	Settings map[string]any      `json:"settings,omitempty"`
	Files    map[string]jobFiles `json:"files,omitempty"` // setting to local files
	client.Terms
}

// jobFiles are the files of a setting: one path, or a list of paths if the setting takes
// a list.
type jobFiles struct {
	Paths []string
	List  bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *jobFiles) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*f = jobFiles{Paths: []string{one}}
		return nil
	}
	f.List = true
	if err := json.Unmarshal(text, &f.Paths); err != nil {
		return errors.New("files: use a path or a list of paths")
	}
	return nil
}

// maxJobFile is the maximum size of a job description.
const maxJobFile = 64 << 20

// readJobFile reads a job description. The file extension determines the format; without
// a known extension, text that begins with a brace is JSON, and any other text is TOML.
func readJobFile(name string, r io.Reader) (j jobFile, err error) {
	err = readDocument(name, r, &j, func(tree map[string]any) error { return checkMembers(tree, memberNames[jobFile]()) })
	return j, err
}

// readDocument reads a description, checks its members and decodes it into the value that
// into points to.
func readDocument(name string, r io.Reader, into any, check func(tree map[string]any) error) error {
	tree, err := readTree(name, r)
	if err == nil {
		err = check(tree)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	plain, err := json.Marshal(tree)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	d := json.NewDecoder(bytes.NewReader(plain))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func readTree(name string, r io.Reader) (tree map[string]any, err error) {
	text, err := io.ReadAll(io.LimitReader(r, maxJobFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxJobFile {
		return nil, errors.New("larger than 64 MiB; refer to files by name instead of including them")
	}
	text = plaintext.Unix(text)
	switch ext := strings.ToLower(filepath.Ext(name)); {
	case ext == ".json" || ext != ".toml" && ext != ".yaml" && ext != ".yml" && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")):
		tree, err = readJSON(text)
	case ext == ".yaml" || ext == ".yml":
		err = yaml.Unmarshal(text, &tree)
	default:
		err = toml.Unmarshal(text, &tree)
	}
	return tree, err
}

func readJSON(text []byte) (tree map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected text after the object")
	}
	return tree, nil
}

// memberNames returns the members that a description can have.
func memberNames[T any]() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func checkMembers(tree map[string]any, known []string) error {
	for name := range tree {
		if slices.Contains(known, name) {
			continue
		}
		if near := plaintext.Nearest(name, known); near != "" {
			return fmt.Errorf("unknown member %q; did you mean %q?", name, near)
		}
		return fmt.Errorf("unknown member %q; put settings of the algorithm into settings, and local files into files", name)
	}
	return nil
}

// Set adds name=value to the settings. The value is JSON if it parses as JSON, otherwise
// text; @path is the text of a file.
func (j *jobFile) Set(text string, read func(path string) ([]byte, error)) error {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return fmt.Errorf("%q is not a setting; write name=value", text)
	}
	if j.Settings == nil {
		j.Settings = map[string]any{}
	}
	if path, ok := strings.CutPrefix(value, "@"); ok {
		content, err := read(path)
		if err != nil {
			return fmt.Errorf("the setting %s: %w", name, err)
		}
		j.Settings[name] = string(content)
		return nil
	}
	j.Settings[name] = settingValue([]byte(value))
	return nil
}

// settingValue decodes text if it is JSON, and otherwise returns it unchanged.
func settingValue(text []byte) any {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(text)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return string(text)
	}
	return v
}

// AddFile adds name=path to the files. A repeated name makes a list, and so does
// name[]=path.
func (j *jobFile) AddFile(text string) error {
	name, path, found := strings.Cut(text, "=")
	name, list := strings.CutSuffix(name, "[]")
	if !found || name == "" || path == "" {
		return fmt.Errorf("%q is not a file for a setting; write name=path", text)
	}
	if j.Files == nil {
		j.Files = map[string]jobFiles{}
	}
	f := j.Files[name]
	f.Paths = append(f.Paths, path)
	f.List = f.List || list || len(f.Paths) > 1
	j.Files[name] = f
	return nil
}

// Tag adds key:value to the tags.
func (j *jobFile) Tag(text string) error {
	key, value, found := strings.Cut(text, ":")
	if !found || key == "" || value == "" {
		return fmt.Errorf("%q is not a tag; write key:value", text)
	}
	if j.Tags == nil {
		j.Tags = map[string]string{}
	}
	j.Tags[key] = value
	return nil
}
