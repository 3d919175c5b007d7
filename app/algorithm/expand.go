package algorithm

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/placement"
	"molrun/app/base/strictjson"
	"molrun/app/task/protocol"
)

// Paths holds the values of the path placeholders of a run; all are absolute.
type Paths struct {
	Work         string              // {work}
	Out          string              // {out}
	In           string              // folder of read-only inputs
	SettingsFile string              // {settings_file}
	Files        map[string][]string // {files.NAME}: one path, or several for a list
	Facts        Facts               // metadata of these files
	Folder       string              // {folder}; "" if the algorithm has none
	Program      string              // {molrun}
}

// Run is one run of an algorithm.
type Run struct {
	Steps []protocol.Step
	Env   map[string]string
	Texts map[string]string // files to write before the run, by path
	Shown []string          // files whose tail is logged when a step fails

	in string
}

// Expand returns a run with every placeholder replaced. Each element of a command becomes
// one argument, whatever text it contains. A user's text can begin with "-", so an
// algorithm file that passes it to a program must write "--" before it, use
// --name={settings.NAME}, or restrict it with a pattern.
func (a *File) Expand(normalized json.RawMessage, needs placement.Resources, p Paths) (*Run, error) {
	settings, err := strictjson.Parse(normalized)
	if err != nil {
		return nil, fmt.Errorf("read normalized settings: %w", err)
	}
	values := valuesOf(settings, p)
	if values.Site, err = a.site, a.whereabouts.unknown(a.site); err != nil {
		return nil, err
	}
	if values.Derived, err = a.relations.texts(values.Settings, p.Facts); err != nil {
		return nil, err
	}
	computed, _ := a.relations.values(values.Settings.Members, p.Facts, nil)
	computed.Files, computed.GPUs = a.Parameters.paths(p.Files), needs.GPUs
	values.Computed = computed
	values.Named["cpus"], values.Named["gpus"] = strconv.Itoa(needs.CPUs), strconv.Itoa(needs.GPUs)
	run := &Run{Texts: map[string]string{}, in: p.In}
	if err := a.texts.fillFiles(values, run.Texts); err != nil {
		return nil, err
	}
	if run.Env, err = expandVariables(a.env, values); err != nil {
		return nil, err
	}
	if run.Shown, err = expandPaths(a.shown, values); err != nil {
		return nil, err
	}
	var shares []float64
	for _, s := range a.steps {
		if s.when != nil && !s.when.Holds(computed) {
			continue
		}
		step, err := s.expand(values, run)
		if err != nil {
			return nil, fmt.Errorf("step %q: %w", s.name, err)
		}
		run.Steps, shares = append(run.Steps, step), append(shares, s.share(computed))
	}
	setSpans(run.Steps, shares)
	if len(run.Steps) == 0 {
		return nil, errors.New("no step applies to these settings")
	}
	return run, nil
}

func expandVariables(all []variable, values *command.Values) (map[string]string, error) {
	env := make(map[string]string, len(all))
	for _, v := range all {
		var err error
		if env[v.name], err = v.text.Expand(values); err != nil {
			return nil, fmt.Errorf("variable %s: %w", v.name, err)
		}
	}
	return env, nil
}

// expand returns the expanded step, and adds its standard input to the run.
func (s *step) expand(values *command.Values, run *Run) (step protocol.Step, err error) {
	step = protocol.Step{Name: s.name, OK: s.ok, FailsIf: s.failsIf}
	var all [3]error
	step.Argv, err = command.Argv(s.command, values)
	step.Stdout, all[0] = s.stdout.Expand(values)
	step.Folder, all[1] = s.folder.Expand(values)
	step.Stdin, all[2] = s.stdin.Expand(values)
	if err := errors.Join(append(all[:], err)...); err != nil {
		return step, err
	}
	if s.stdin != nil && !s.isFile {
		path := filepath.Join(run.in, fmt.Sprintf(".stdin-%d", len(run.Steps)+1))
		run.Texts[path], step.Stdin = step.Stdin, path
	}
	if step.Makes, err = expandPaths(s.makes, values); err != nil {
		return step, err
	}
	if step.Keep, err = expandPaths(s.keep, values); err != nil {
		return step, err
	}
	if step.Gauge, err = s.progress.expand(values); err != nil {
		return step, err
	}
	if len(s.env) > 0 {
		step.Env, err = expandVariables(s.env, values)
	}
	return step, err
}

func expandPaths(templates []command.Template, values *command.Values) ([]string, error) {
	var paths []string
	for _, t := range templates {
		path, err := t.Expand(values)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// valuesOf returns the placeholder values of a job, except its resources.
func valuesOf(settings *strictjson.Value, p Paths) *command.Values {
	return &command.Values{Settings: settings, Files: p.Files, Named: map[string]string{
		"settings_file": p.SettingsFile,
		"out":           p.Out,
		"work":          p.Work,
		"folder":        p.Folder,
		"molrun":        p.Program,
	}}
}
