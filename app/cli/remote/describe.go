package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"molrun/app/base/unit"
	"molrun/app/client"
)

// description collects what a command's flags and files specify about a job.
type description struct {
	name, input, version, note string
	set, file, tags, notify    []string
	after                      []string
	afterAny, example          bool
	priority                   int
	maxRuntime                 string
	folder                     string
}

func (d *description) addFlags(c *cobra.Command, called string) {
	f := c.Flags()
	f.StringVarP(&d.name, "name", "n", "", "name of the "+called+" (default: the type and a random suffix)")
	f.StringVarP(&d.input, "input", "i", "", d.inputHelp(called))
	f.StringArrayVar(&d.set, "set", nil, "setting, name=value: JSON if it parses as JSON, otherwise text; name=@path reads the text of a file")
	f.StringArrayVar(&d.file, "file", nil, "input file, setting=path; repeat for a list of files")
	f.BoolVar(&d.example, "example", false, "start from the algorithm's example")
	f.StringVar(&d.version, "version", "", "version of the algorithm")
	f.StringArrayVar(&d.after, "after", nil, "start after this job has COMPLETED")
	f.BoolVar(&d.afterAny, "after-any", false, "start after the jobs of --after have finished, even if they failed")
	f.StringArrayVar(&d.tags, "tag", nil, "tag, key:value")
	f.StringVar(&d.note, "note", "", "note")
	f.StringArrayVar(&d.notify, "notify", nil, "notify when finished: https://… or mailto:…")
	f.IntVar(&d.priority, "priority", 0, "priority from -10 to 10; above 0 for admins only")
	f.StringVar(&d.maxRuntime, "max-runtime", "", "stop the job after this time, such as 2h")
	f.StringVar(&d.folder, "folder", "", "folder for uploaded files (default inputs; for an example, examples/TYPE)")
	completeFlag(c, "after", completeJobs)
	completeFlag(c, "set", completeSettings)
	completeFlag(c, "file", completeSettings)
}

func (d *description) inputHelp(called string) string {
	if called == "batch" {
		return "source of the jobs: a table (.csv, .tsv, .xlsx), a FASTA file or a folder of files; or a .toml, .yaml or .json file with a list of jobs (required)"
	}
	return "description of the job: a .toml, .yaml or .json file; - is standard input"
}

// job combines the input, the example and the flags into one job; flags take precedence.
func (d *description) job(ctx context.Context, s *session, c *cobra.Command, args []string) (j jobFile, err error) {
	if d.input != "" {
		if j, err = readJob(d.input, c.InOrStdin()); err != nil {
			return j, Usage(err)
		}
	}
	if len(args) == 1 {
		j.Type = args[0]
	}
	if j.Type == "" {
		return j, Usagef("specify an algorithm, as in %s cg-idp; molrun algorithms lists them", c.CommandPath())
	}
	j.Version = cmp.Or(d.version, j.Version)
	if d.example {
		if err := startFromExample(ctx, s, &j, d.folder); err != nil {
			return j, err
		}
	}
	return j, d.override(&j, c.Flags())
}

// override applies the flags to j.
func (d *description) override(j *jobFile, flags *pflag.FlagSet) error {
	for _, each := range []struct {
		texts []string
		take  func(string) error
	}{
		{d.set, func(text string) error { return j.Set(text, readValue) }},
		{d.file, j.AddFile},
		{d.tags, j.Tag},
	} {
		for _, text := range each.texts {
			if err := each.take(text); err != nil {
				return Usage(err)
			}
		}
	}
	j.Name, j.Note = cmp.Or(d.name, j.Name), cmp.Or(d.note, j.Note)
	j.After, j.Notify = append(j.After, d.after...), append(j.Notify, d.notify...)
	j.AfterAny = j.AfterAny || d.afterAny
	if flags.Changed("priority") {
		j.Priority = d.priority
	}
	if d.maxRuntime != "" {
		var most unit.Duration
		if err := most.UnmarshalText([]byte(d.maxRuntime)); err != nil {
			return Usagef("--max-runtime: %w", err)
		}
		j.MaxRuntime = int64(most) / 1e9
	}
	if j.Name == "" {
		j.Name = j.Type + "-" + strings.ToLower(rand.Text()[:6])
	}
	return nil
}

// readValue reads the file of a name=@path setting.
func readValue(path string) ([]byte, error) { return readText(path, "; give it with --file") }

// maxText is the maximum size of a file that becomes part of a request.
const maxText = 64 << 20

// readText reads a file. If the file is too large, it returns an error that ends with
// warning.
func readText(path, warning string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read-only
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err == nil && len(text) > maxText {
		err = fmt.Errorf("%s is larger than %s%s", path, unit.Bytes(maxText), warning)
	}
	return text, err
}

func readJob(path string, stdin io.Reader) (jobFile, error) {
	if path == "-" {
		return readJobFile("standard input", stdin)
	}
	f, err := os.Open(path)
	if err != nil {
		return jobFile{}, err
	}
	defer f.Close() // read-only
	j, err := readJobFile(path, f)
	resolvePaths(&j, path)
	return j, err
}

// resolvePaths resolves a job's relative file paths against the folder of its
// description.
func resolvePaths(j *jobFile, description string) {
	for name, files := range j.Files {
		for i, file := range files.Paths {
			if !filepath.IsAbs(file) {
				files.Paths[i] = filepath.Join(filepath.Dir(description), file)
			}
		}
		j.Files[name] = files
	}
}

// startFromExample fills in settings from the algorithm's example where j has none, and
// uploads the example files that they name.
func startFromExample(ctx context.Context, s *session, j *jobFile, folder string) error {
	a, err := s.API.Algorithm(ctx, j.Type, j.Version)
	if err != nil {
		return err
	}
	if len(a.Example) == 0 {
		return Usagef("%s has no example; specify its settings with --set", j.Type)
	}
	var settings map[string]any
	if err := decodeExact(a.Example, &settings); err != nil {
		return fmt.Errorf("the example of %s: %w", j.Type, err)
	}
	brought, err := uploadExampleFiles(ctx, s, j.Type, folder, settings)
	if err != nil {
		return err
	}
	for name, value := range brought.(map[string]any) {
		if _, given := j.Settings[name]; given {
			continue
		}
		if _, given := j.Files[name]; given {
			continue
		}
		if j.Settings == nil {
			j.Settings = map[string]any{}
		}
		j.Settings[name] = value
	}
	return nil
}

// uploadExampleFiles uploads the files that an example's settings name, and returns the settings with
// references to the uploads.
func uploadExampleFiles(ctx context.Context, s *session, typ, folder string, value any) (any, error) {
	switch v := value.(type) {
	case string:
		name, ok := strings.CutPrefix(v, "example:")
		if !ok {
			return v, nil
		}
		return bringFile(ctx, s, typ, folder, name)
	case []any:
		for i := range v {
			var err error
			if v[i], err = uploadExampleFiles(ctx, s, typ, folder, v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			var err error
			if v[name], err = uploadExampleFiles(ctx, s, typ, folder, v[name]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func bringFile(ctx context.Context, s *session, typ, folder, name string) (reference string, err error) {
	text, err := exampleFile(ctx, s, typ, name)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "molrun-example-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, filepath.Base(name))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", err
	}
	sent, err := s.SendFiles(ctx, []string{path}, cmp.Or(folder, "examples/"+typ))
	if err != nil {
		return "", err
	}
	return sent[0].Reference(path), nil
}

// prepare uploads a job's files and returns the submission to send to the service.
func prepare(ctx context.Context, s *session, j *jobFile, folder string) (*client.Submission, error) {
	settings, err := prepareSettings(ctx, s, j, folder)
	if err != nil {
		return nil, err
	}
	return &client.Submission{Name: j.Name, Type: j.Type, Version: j.Version, Settings: encoded(settings), Terms: j.Terms}, nil
}

// prepareSettings uploads a job's files and returns its settings with references to the
// uploads.
func prepareSettings(ctx context.Context, s *session, j *jobFile, folder string) (map[string]any, error) {
	var paths []string
	for _, files := range j.Files {
		paths = append(paths, files.Paths...)
	}
	sent, err := s.SendFiles(ctx, paths, folder)
	if err != nil {
		return nil, err
	}
	references := map[string]string{}
	for i, path := range paths {
		references[path] = sent[i].Reference(path)
	}
	settings := map[string]any{}
	for name, value := range j.Settings {
		settings[name] = value
	}
	for name, files := range j.Files {
		settings[name] = refer(files, references)
	}
	return settings, nil
}

// encoded encodes settings as JSON. They were decoded from JSON, so this can't fail. The
// service keeps the text as sent.
func encoded(settings map[string]any) json.RawMessage {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(settings); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(text.Bytes())
}

func refer(files jobFiles, references map[string]string) any {
	if !files.List {
		return references[files.Paths[0]]
	}
	list := make([]string, len(files.Paths))
	for i, path := range files.Paths {
		list[i] = references[path]
	}
	return list
}
