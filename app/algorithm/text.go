package algorithm

import (
	"fmt"
	"slices"

	"molrun/app/algorithm/command"
	"molrun/app/algorithm/expression"
	"molrun/app/base/strictjson"
)

// text is an entry of [[texts]]: a file generated from settings before the first step.
type text struct {
	path command.Template
	when *expression.Expression // nil means always
	body *command.FileText
}

// textFiles holds all entries of [[texts]].
type textFiles struct {
	all        []text
	parameters Parameters
	derived    []derived
}

// textValues lists what the template of a text can refer to in addition to settings,
// derived values and files.
var textValues = []string{"out", "work", "folder", "cpus", "gpus"}

func readTexts(c commandReader) textFiles {
	r := c.Reader
	made := textFiles{parameters: c.parameters, derived: c.derived}
	for _, t := range r.Tables(r.Root, "texts") {
		one := text{when: c.condition(t)}
		if n := t.Member("file"); n != nil && n.Kind == strictjson.String {
			one.path = readFilePath(r, n, "file")
		}
		n := t.Member("text")
		if n == nil || n.Kind != strictjson.String {
			continue
		}
		var err error
		if one.body, err = command.ParseFileText(n.Text); err != nil {
			r.Errorf(n.Line, "text: line %v", err)
			continue
		}
		for _, u := range one.body.Uses {
			c.textUse(n.Line, u)
		}
		made.all = append(made.all, one)
	}
	return made
}

// textUse reports a reference to a value that does not exist.
func (c *commandReader) textUse(line int, u command.Use) {
	p := c.parameters.Named(u.Name)
	switch u.Kind {
	case "site":
		c.siteValue(line, u.Name)
	case "settings", "files":
		switch {
		case p == nil:
			c.parameters.reportUnknown(c.Reader, line, u.Name)
		case (u.Kind == "files") != (len(p.File) > 0):
			c.Errorf(line, "text reads .%s.%s, but the parameter is %s", u.Kind, u.Name, fileOrNot(p, ".", ""))
		}
	case "derived":
		if !slices.ContainsFunc(c.derived, func(d derived) bool { return d.name == u.Name }) {
			c.Errorf(line, "no derived value is named %q: define it in [derived]", u.Name)
		}
	}
}

// fillFiles adds the generated files to those of a run, keyed by path.
func (f textFiles) fillFiles(values *command.Values, files map[string]string) error {
	if len(f.all) == 0 {
		return nil
	}
	data := f.data(values)
	for _, t := range f.all {
		if t.when != nil && !t.when.Holds(values.Computed) {
			continue
		}
		path, err := t.path.Expand(values)
		if err != nil {
			return err
		}
		if files[path], err = t.body.Fill(data); err != nil {
			return fmt.Errorf("the text of %s: line %w", path, err)
		}
	}
	return nil
}

// data returns the values that the templates of text files can refer to. A setting without
// a value is nil.
func (f textFiles) data(values *command.Values) map[string]any {
	settings, derived := map[string]any{}, map[string]any{}
	for _, p := range f.parameters {
		settings[p.Name] = nil
	}
	for _, m := range values.Settings.Members {
		settings[m.Name] = command.Native(m.Value)
	}
	for _, d := range f.derived {
		derived[d.name] = nil
	}
	for name, v := range values.Derived {
		derived[name] = v
	}
	data := map[string]any{"settings": settings, "derived": derived, "files": values.Computed.Files, "site": values.Site}
	for _, name := range textValues {
		data[name] = values.Named[name]
	}
	return data
}
