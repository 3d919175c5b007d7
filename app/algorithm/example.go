package algorithm

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"molrun/app/strictjson"
)

// exampleFile is the prefix of a file that comes with the algorithms.
const exampleFile = "example:"

func (r *reader) example(a *File, root *tomlNode) *Example {
	t := r.table(root, "example")
	if t == nil {
		return nil
	}
	r.known(t, "[example]", []string{"settings", "expect"})
	e := &Example{Files: []string{}, Metrics: map[string][2]float64{}}
	if t.member("settings") == nil {
		r.mistake(t.line, "settings is missing in [example]")
	} else if n := r.table(t, "settings"); n != nil {
		e.Settings = r.exampleSettings(a, n)
	}
	if n := r.table(t, "expect"); n != nil {
		r.expectations(e, n)
	}
	return e
}

func (r *reader) exampleSettings(a *File, n *tomlNode) json.RawMessage {
	text := n.appendJSON(nil)
	v, err := strictjson.Parse(text)
	if err != nil {
		r.mistake(n.line, "the example cannot be used: %v", err)
		return nil
	}
	for _, p := range a.FileParameters() {
		ref := v.Member(p.Name)
		if ref == nil || ref.Kind != strictjson.String {
			continue
		}
		name, ok := strings.CutPrefix(ref.Text, exampleFile)
		if ok && (name != path.Base(name) || !p.Accepts(name)) {
			r.mistake(n.lineAt([]any{p.Name}), "%q must be %sNAME with NAME ending in %s", ref.Text, exampleFile, orList(p.File))
		}
	}
	checked := File{Type: cmp.Or(a.Type, "the algorithm"), Parameters: slices.DeleteFunc(slices.Clone(a.Parameters), func(p Parameter) bool { return p.compiled == nil })}
	_, faults := checked.CheckSettings(v)
	for _, f := range faults {
		name, _ := f.Loc[0].(string)
		if p := a.parameter(name); p == nil || p.compiled != nil { // else noted at the parameter
			r.mistake(n.lineAt(f.Loc), "the example's settings: %s %s", joinPath(f.Loc), f.Msg)
		}
	}
	return text
}

func (r *reader) expectations(e *Example, n *tomlNode) {
	r.known(n, "expect", []string{"files", "metrics"})
	e.Files = r.texts(n, "files")
	for i, file := range e.Files {
		if item := n.member("files").items[i]; item.kind == strictjson.String && !isResultPath(file) {
			r.mistake(item.line, "%q is no path below the output folder", file)
		}
	}
	t := r.table(n, "metrics")
	if t == nil {
		return
	}
	for _, m := range t.members {
		low, high, ok := rangeOf(m.value)
		if !ok {
			r.mistake(m.line, "%s must be a range of two numbers, [lowest, highest]", m.name)
		}
		e.Metrics[m.name] = [2]float64{low, high}
	}
}

func rangeOf(n *tomlNode) (low, high float64, ok bool) {
	if n.kind != strictjson.Array || len(n.items) != 2 || n.items[0].kind != strictjson.Number || n.items[1].kind != strictjson.Number {
		return 0, 0, false
	}
	low, errLow := strconv.ParseFloat(n.items[0].text, 64)
	high, errHigh := strconv.ParseFloat(n.items[1].text, 64)
	return low, high, errLow == nil && errHigh == nil && low <= high
}
