package algorithm

import (
	"fmt"
	"slices"

	"molrun/app/algorithm/content"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
)

// Facts is the file metadata of a job: values by setting and name.
type Facts map[string]map[string]float64

// Metadata of every file; package content adds more.
const (
	factFiles   = "files"
	factBytes   = "bytes"
	factPending = "pending" // number of files not created yet; never shown
)

// AddFile counts a file of a setting; the size of a pending file is ignored.
func (f Facts) AddFile(setting string, bytes int64, pending bool) {
	counted := content.Facts{factFiles: 1, factBytes: float64(bytes)}
	if pending {
		counted = content.Facts{factPending: 1}
	}
	f.addCounts(setting, counted)
}

// addCounts adds the metadata of one more file.
func (f Facts) addCounts(setting string, counted content.Facts) {
	if f[setting] == nil {
		f[setting] = map[string]float64{}
	}
	for fact, n := range counted {
		if fact == "longest" || fact == "largest" {
			f[setting][fact] = max(f[setting][fact], n)
			continue
		}
		f[setting][fact] += n
	}
}

// factNames returns the metadata names of each file parameter.
func (all Parameters) factNames() map[string][]string {
	names := map[string][]string{}
	for _, p := range all.Files() {
		names[p.Name] = slices.Concat([]string{factFiles, factBytes}, content.FactsOf(p.contentKind()))
	}
	return names
}

// factsOf returns the metadata in the form that expressions use: 0 if no file is given,
// and unknown if a file has not been created or read yet.
func (all Parameters) factsOf(settings []strictjson.Member, facts Facts, unknown any) map[string]map[string]any {
	values := map[string]map[string]any{}
	for file, names := range all.factNames() {
		given := slices.ContainsFunc(settings, func(m strictjson.Member) bool { return m.Name == file && m.Value.Kind != strictjson.Null }) ||
			all.Named(file).Maker.Requested(settings)
		values[file] = map[string]any{}
		for _, name := range names {
			n, known := facts[file][name]
			if known = known && facts[file][factPending] == 0; known || !given {
				values[file][name] = n
			} else {
				values[file][name] = unknown
			}
		}
	}
	return values
}

// CountFaults returns an error for each list that has too few or too many files. It is
// needed for settings that name outputs, because the schema does not know how many files
// these expand to.
func (all Parameters) CountFaults(facts Facts) (faults []fault.Field) {
	for _, p := range all {
		n, pending := int(facts[p.Name][factFiles]), int(facts[p.Name][factPending])
		switch {
		case !p.Many || n+pending == 0:
		case n+pending > p.most:
			faults = append(faults, fault.Field{Loc: []any{p.Name}, Type: "value", Msg: fmt.Sprintf("has %d files, including those of outputs; the maximum is %d", n+pending, p.most)})
		case pending == 0 && n < p.least:
			faults = append(faults, fault.Field{Loc: []any{p.Name}, Type: "value", Msg: fmt.Sprintf("has %s, including those of outputs; it needs at least %d", unit.Count(n, "file"), p.least)})
		}
	}
	return faults
}
