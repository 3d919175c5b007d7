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

// files translates the file references in settings: name.pdb, folder/name.pdb,
// JobName/path/of/a/result.pdb, or the contents of a file.
type files struct {
	*call
	typ    any
	kinds  map[string]string // file setting to file extension
	known  bool
	isJob  map[string]bool            // by first path segment
	folder map[string]map[string]bool // file names by folder
	asked  map[string]string          // reference to the original name in the request
}

func (c *call) filesOf(body map[string]any) *files {
	return &files{call: c, typ: body["type"], isJob: map[string]bool{}, folder: map[string]map[string]bool{}, asked: map[string]string{}}
}

// loadKinds determines which settings are files. It leaves an unknown algorithm for the API
// to report.
func (f *files) loadKinds() error {
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

// translate returns the settings with file references that the API accepts.
func (f *files) translate(settings map[string]any) (map[string]any, error) {
	if err := f.loadKinds(); err != nil {
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
					continue // the API reports the error
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

// reference matches references that the API accepts.
var reference = regexp.MustCompile(`^(job:|sha256:)|^[0-9A-HJKMNP-TV-Z]{26}$`)

// refer returns the API's reference to a file. name is the file name for contents sent in
// the settings.
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

// ofJob reports whether a path refers to a job's result: the job exists, and there is no
// upload with this path.
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

// names returns the names of the uploads in a folder.
func (f *files) names(folder string) (map[string]bool, error) {
	if names, known := f.folder[folder]; known {
		return names, nil
	}
	names := map[string]bool{}
	err := f.uploads(url.Values{"folder": {folder}}, func(u *client.File) { names[u.Filename] = true })
	if isInvalid(err) { // not a valid folder name
		err = nil
	}
	f.folder[folder] = names
	return names, err
}

func isInvalid(err error) bool { return statusOf(err) == http.StatusUnprocessableEntity }

// uploadText uploads content, unless it is already uploaded, and returns a reference by
// digest.
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

// explain rewrites errors about missing files to the text that clients match.
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
