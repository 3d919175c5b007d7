package algorithm

import (
	"encoding/json"
	"fmt"
	"strconv"

	"molrun/app/algorithm/command"
	"molrun/app/placement"
	"molrun/app/protocol"
	"molrun/app/strictjson"
)

// Paths are what the placeholders of a run stand for; all are absolute.
type Paths struct {
	Work         string            // {work}
	Out          string            // {out}
	SettingsFile string            // {settings_file}
	Files        map[string]string // {files.NAME}
	Program      string            // {molrun}
}

// Expand returns the steps and the environment of a run, with every placeholder
// replaced. Each element is one argument, whatever its text. A user's text may
// begin with "-"; a file that passes one to a program writes "--" before it,
// --name={settings.NAME}, or a pattern.
func (a *File) Expand(normalized json.RawMessage, needs placement.Resources, p Paths) (steps []protocol.Step, env map[string]string, err error) {
	values, err := valuesOf(normalized, p)
	if err != nil {
		return nil, nil, err
	}
	values.Named["cpus"], values.Named["gpus"] = strconv.Itoa(needs.CPUs), strconv.Itoa(needs.GPUs)
	for _, s := range a.steps {
		step := protocol.Step{Name: s.name}
		if step.Argv, err = command.Argv(s.command, values); err != nil {
			return nil, nil, fmt.Errorf("step %q: %w", s.name, err)
		}
		if step.Stdout, err = s.stdout.Expand(values); err != nil {
			return nil, nil, fmt.Errorf("stdout of step %q: %w", s.name, err)
		}
		steps = append(steps, step)
	}
	env = make(map[string]string, len(a.env))
	for _, v := range a.env {
		if env[v.name], err = v.text.Expand(values); err != nil {
			return nil, nil, fmt.Errorf("variable %s: %w", v.name, err)
		}
	}
	return steps, env, nil
}

// valuesOf returns what the placeholders of a job stand for, except its
// resources.
func valuesOf(normalized json.RawMessage, p Paths) (*command.Values, error) {
	settings, err := strictjson.Parse(normalized)
	if err != nil {
		return nil, fmt.Errorf("read normalized settings: %w", err)
	}
	return &command.Values{Settings: settings, Files: p.Files, Named: map[string]string{
		"settings_file": p.SettingsFile,
		"out":           p.Out,
		"work":          p.Work,
		"molrun":        p.Program,
	}}, nil
}
