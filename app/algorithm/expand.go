package algorithm

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"molrun/app/placement"
	"molrun/app/protocol"
	"molrun/app/strictjson"
)

// Expand gives the steps and the environment of a run: every placeholder
// replaced, one argument for each element, whatever its text. An argument
// that is a user's text may begin with "-"; a file that passes such a text to
// a program writes "--" before it, --name={settings.NAME}, or a pattern.
func (a *File) Expand(normalized json.RawMessage, needs placement.Resources, p Paths) (steps []protocol.Step, env map[string]string, err error) {
	settings, err := strictjson.Parse(normalized)
	if err != nil {
		return nil, nil, fmt.Errorf("read normalized settings: %w", err)
	}
	e := &expansion{settings: settings, needs: needs, paths: p}
	for _, s := range a.steps {
		step := protocol.Step{Name: s.name}
		if step.Argv, err = e.argv(s.command); err != nil {
			return nil, nil, fmt.Errorf("step %q: %w", s.name, err)
		}
		if step.Stdout, err = s.stdout.expand(e); err != nil {
			return nil, nil, fmt.Errorf("stdout of step %q: %w", s.name, err)
		}
		steps = append(steps, step)
	}
	env = make(map[string]string, len(a.env))
	for _, v := range a.env {
		if env[v.name], err = v.text.expand(e); err != nil {
			return nil, nil, fmt.Errorf("variable %s: %w", v.name, err)
		}
	}
	return steps, env, nil
}

func (e *expansion) argv(command []argument) ([]string, error) {
	var argv []string
	for _, arg := range command {
		texts := []template{arg.text}
		if arg.when != "" {
			texts = arg.then
			if !e.given(arg.when) {
				continue
			}
		}
		for _, t := range texts {
			text, err := t.expand(e)
			if err != nil {
				return nil, err
			}
			argv = append(argv, text)
		}
	}
	return argv, nil
}

// given is the meaning of "if": the setting has a value, and that is neither
// null nor false. 0 and "" are values.
func (e *expansion) given(name string) bool {
	v := e.settings.Member(name)
	return v != nil && v.Kind != strictjson.Null && (v.Kind != strictjson.Bool || v.Text == "true")
}

// expansion is what placeholders of one job stand for.
type expansion struct {
	settings *strictjson.Value
	needs    placement.Resources
	paths    Paths
}

func (t template) expand(e *expansion) (string, error) {
	var b strings.Builder
	for _, part := range t {
		text, err := e.value(part)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func (e *expansion) value(part templatePart) (string, error) {
	switch part.kind {
	case "":
		return part.text, nil
	case "settings":
		v := e.settings.Member(part.name)
		if v == nil {
			return "", fmt.Errorf("the setting %q has no value", part.name)
		}
		return argumentText(v), nil
	case "files":
		path := e.paths.Files[part.name]
		if path == "" {
			return "", fmt.Errorf("the file of the setting %q is not there", part.name)
		}
		return path, nil
	case "cpus":
		return strconv.Itoa(e.needs.CPUs), nil
	case "gpus":
		return strconv.Itoa(e.needs.GPUs), nil
	}
	path := map[string]string{
		"settings_file": e.paths.SettingsFile,
		"out":           e.paths.Out,
		"work":          e.paths.Work,
		"molrun":        e.paths.Program,
	}[part.kind]
	if path == "" {
		return "", fmt.Errorf("{%s} has no path here", part.kind)
	}
	return path, nil
}

// argumentText gives a value as part of an argument: a string as it is, a
// number in plain digits, a list or an object as compact JSON.
func argumentText(v *strictjson.Value) string {
	if v.Kind == strictjson.String {
		return v.Text
	}
	return string(strictjson.AppendPlain(nil, v))
}
