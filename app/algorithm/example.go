package algorithm

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"molrun/app/algorithm/folder"
	"molrun/app/algorithm/results"
	"molrun/app/algorithm/schema"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// exampleFile prefixes the name of a file that is included with the algorithms.
const exampleFile = "example:"

func readExample(r *tomltree.Reader, a *File) *Example {
	t := r.Table(r.Root, "example")
	if t == nil {
		return nil
	}
	e := &Example{Files: []string{}, Metrics: map[string][2]float64{}}
	if n := r.Table(t, "settings"); n != nil {
		e.Settings = readExampleSettings(r, a, n)
	}
	if n := r.Table(t, "expect"); n != nil {
		readExpectations(r, e, n)
	}
	return e
}

func readExampleSettings(r *tomltree.Reader, a *File, n *tomltree.Node) json.RawMessage {
	text := n.AppendJSON(nil)
	v, err := strictjson.Parse(text)
	if err != nil {
		r.Errorf(n.Line, "the example cannot be used: %v", err)
		return nil
	}
	for _, p := range a.Parameters.Files() {
		for _, ref := range p.References(v) {
			name, ok := strings.CutPrefix(ref.Text, exampleFile)
			if ok && (name != path.Base(name) || !p.Accepts(name)) {
				r.Errorf(n.LineAt(ref.Loc), "%q must be %sNAME with NAME ending in %s", ref.Text, exampleFile, tomltree.OrList(p.File))
			} else if ok && a.Folder != nil && a.Folder.Named(path.Join(folder.Examples, name)) == nil {
				r.Errorf(n.LineAt(ref.Loc), "the algorithm's folder has no %s", path.Join(folder.Examples, name))
			}
		}
	}
	checked := File{Type: cmp.Or(a.Type, "the algorithm"), relations: a.relations, Parameters: slices.DeleteFunc(slices.Clone(a.Parameters), func(p Parameter) bool { return p.compiled == nil })}
	_, faults := checked.CheckSettings(v)
	for _, f := range faults {
		name, _ := f.Loc[0].(string)
		if p := a.Parameters.Named(name); p == nil || p.compiled != nil { // otherwise the invalid parameter was reported
			r.Errorf(n.LineAt(f.Loc), "the example's settings: %s %s", schema.Path(f.Loc), f.Msg)
		}
	}
	return text
}

func readExpectations(r *tomltree.Reader, e *Example, n *tomltree.Node) {
	e.Files = r.Texts(n, "files")
	for i, file := range e.Files {
		if item := n.Member("files").Items[i]; item.Kind == strictjson.String && !results.IsPath(file) {
			r.Errorf(item.Line, "%q is not a path below the output folder", file)
		}
	}
	t := r.Table(n, "metrics")
	if t == nil {
		return
	}
	for _, m := range t.Members {
		low, high, ok := rangeOf(m.Value)
		if !ok {
			r.Errorf(m.Line, "%s must be a range of two numbers, [lowest, highest]", m.Name)
		}
		e.Metrics[m.Name] = [2]float64{low, high}
	}
}

func rangeOf(n *tomltree.Node) (low, high float64, ok bool) {
	if n.Kind != strictjson.Array || len(n.Items) != 2 || n.Items[0].Kind != strictjson.Number || n.Items[1].Kind != strictjson.Number {
		return 0, 0, false
	}
	low, errLow := strconv.ParseFloat(n.Items[0].Text, 64)
	high, errHigh := strconv.ParseFloat(n.Items[1].Text, 64)
	return low, high, errLow == nil && errHigh == nil && low <= high
}
