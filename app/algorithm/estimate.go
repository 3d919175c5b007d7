package algorithm

import (
	"encoding/json"

	"molrun/app/algorithm/formula"
	"molrun/app/strictjson"
	"molrun/app/tomltree"
)

// readEstimate reads the formula of a job's size, nil if the file has none.
func readEstimate(r *tomltree.Reader, parameters Parameters) *formula.Formula {
	t := r.Table(r.Root, "estimate")
	if t == nil {
		return nil
	}
	r.Known(t, "[estimate]", []string{"size"})
	n := t.Member("size")
	if n == nil {
		r.Mistakef(t.Line, "[estimate] needs size, a formula such as \"settings.steps\"")
		return nil
	}
	text := r.Text(t, "size")
	if n.Kind != strictjson.String {
		return nil
	}
	f, err := formula.Parse(text)
	if err != nil {
		r.Mistakef(n.Line, "size %q: %v", text, err)
		return nil
	}
	for _, u := range f.Uses {
		checkUse(r, parameters, n.Line, u)
	}
	return f
}

// checkUse checks a parameter that a formula reads.
func checkUse(r *tomltree.Reader, parameters Parameters, line int, u formula.Use) {
	p := parameters.Named(u.Name)
	switch {
	case p == nil:
		parameters.noteUnknown(r, line, u.Name)
	case u.Kind == "files" && len(p.File) == 0:
		r.Mistakef(line, "size reads {files.%s}, but the parameter is no file: write settings.%s", u.Name, u.Name)
	case u.Kind == "settings" && len(p.File) > 0:
		r.Mistakef(line, "size reads settings.%s, but the parameter is a file: write files.%s for its bytes", u.Name, u.Name)
	case u.Kind == "settings" && u.As == "" && !p.compiled.IsOneOf("integer", "number", "boolean"):
		r.Mistakef(line, "size reads settings.%s as a number, but its type is another: write length(settings.%s) or count(settings.%s)", u.Name, u.Name, u.Name)
	}
}

// SizeFormula returns the formula of a job's size, "" if the file has none.
func (a *File) SizeFormula() string {
	if a.size == nil {
		return ""
	}
	return a.size.Text
}

// Size returns the size of a job with these normalized settings and bytes of files: run
// times are compared by it. It is 0 if that is unknown.
func (a *File) Size(normalized json.RawMessage, files map[string]int64) float64 {
	if a.size == nil {
		return 0
	}
	settings, err := strictjson.Parse(normalized)
	if err != nil {
		return 0
	}
	return a.size.Value(&formula.Job{Settings: settings, Files: files})
}
