package compat

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/client"
)

// files translates the files that settings name: name.pdb, folder/name.pdb,
// JobName/path/of/a/result.pdb, or the text of a file.
type files struct {
	*call
	typ    any
	kinds  map[string]string // by setting that is a file: how the names of its files end
	known  bool
	isJob  map[string]bool            // by first segment
	folder map[string]map[string]bool // names by folder
	asked  map[string]string          // what was named, by reference
}

func (c *call) filesOf(body map[string]any) *files {
	return &files{call: c, typ: body["type"], isJob: map[string]bool{}, folder: map[string]map[string]bool{}, asked: map[string]string{}}
}

// learn asks which settings are files. The API reports an unknown algorithm.
func (f *files) learn() error {
	if f.known {
		return nil
	}
	f.known = true
	name, ok := f.typ.(string)
	if !ok || name == "" {
		return nil
	}
	a, err := f.findAlgorithm(name)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	f.kinds = map[string]string{}
	for _, p := range a.Parameters {
		if len(p.File) > 0 {
			f.kinds[p.Name] = p.File[0]
		}
	}
	return nil
}

// translate returns settings whose files the API knows.
func (f *files) translate(settings map[string]any) (map[string]any, error) {
	if err := f.learn(); err != nil {
		return nil, err
	}
	out := maps.Clone(settings)
	for name, kind := range f.kinds {
		switch value := out[name].(type) {
		case string:
			ref, err := f.refer(value, name+kind)
			if err != nil {
				return nil, err
			}
			out[name] = ref
		case []any:
			list := slices.Clone(value)
			for i, each := range list {
				text, ok := each.(string)
				if !ok {
					continue // the API says what is wrong
				}
				ref, err := f.refer(text, fmt.Sprintf("%s-%d%s", name, i+1, kind))
				if err != nil {
					return nil, err
				}
				list[i] = ref
			}
			out[name] = list
		}
	}
	return out, nil
}

// reference matches what the API itself takes.
var reference = regexp.MustCompile(`^(job:|sha256:)|^[0-9A-HJKMNP-TV-Z]{26}$`)

// refer returns how the API names a file. name is for a file that is sent within the
// settings.
func (f *files) refer(value, name string) (ref string, err error) {
	first, rest, inFolder := strings.Cut(value, "/")
	switch {
	case strings.Contains(value, "\n"):
		ref, err = f.uploadText(value, name)
	case reference.MatchString(value) || value == "":
		return value, nil
	case !inFolder:
		ref = defaultFolder + "/" + value
	default:
		ref, err = value, nil
		var ofJob bool
		if ofJob, err = f.ofJob(first, value); ofJob {
			ref = "job:" + first + "/" + rest
		}
	}
	f.asked[ref] = value
	return ref, err
}

// ofJob reports whether a path is that of a result: there is such a job, and no upload.
func (f *files) ofJob(job, path string) (bool, error) {
	is, known := f.isJob[job]
	if !known {
		_, err := f.api.Job(f.ctx(), job)
		if err != nil && !isMissing(err) && !isInvalid(err) {
			return false, err
		}
		is = err == nil
		f.isJob[job] = is
	}
	if !is {
		return false, nil
	}
	i := strings.LastIndexByte(path, '/')
	names, err := f.names(path[:i])
	return !names[path[i+1:]], err
}

// names lists the uploads of a folder.
func (f *files) names(folder string) (map[string]bool, error) {
	if names, known := f.folder[folder]; known {
		return names, nil
	}
	names := map[string]bool{}
	err := f.uploads(url.Values{"folder": {folder}}, func(u *client.File) { names[u.Filename] = true })
	if isInvalid(err) { // no folder can be named so
		err = nil
	}
	f.folder[folder] = names
	return names, err
}

func isInvalid(err error) bool { return statusOf(err) == http.StatusUnprocessableEntity }

// uploadText uploads a text once, and refers to its bytes.
func (f *files) uploadText(content, name string) (string, error) {
	sum := sha256.Sum256([]byte(content))
	digest := hex.EncodeToString(sum[:])
	ref := "sha256:" + digest + "/" + name
	a, err := f.api.Get(f.ctx(), url.Values{"sha256": {digest}, "limit": {"1"}}, "files")
	if err != nil {
		return "", err
	}
	there, err := client.Decode[struct {
		Files []client.File `json:"files"`
	}](a)
	if err != nil || len(there.Files) > 0 {
		return ref, err
	}
	_, err = f.api.UploadBytes(f.ctx(), "", name, []byte(content))
	return ref, err
}

// explain says of a missing file what clients look for.
func (f *files) explain(err error) error {
	var e *client.Error
	if errors.As(err, &e) {
		for i := range e.Details {
			e.Details[i] = f.explainOne(e.Details[i])
		}
	}
	return err
}

func (f *files) explainOne(d fault.Field) fault.Field {
	if d.Type != "file" {
		return d
	}
	for ref, asked := range f.asked {
		if strings.HasPrefix(strings.ToLower(d.Msg), "there is no ") && strings.Contains(d.Msg, fmt.Sprintf("%q", ref)) {
			d.Msg = fmt.Sprintf("File %s has not been uploaded.", asked)
		}
	}
	return d
}
