package algorithm

import (
	"fmt"
	"slices"

	"molrun/app/algorithm/content"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
	"molrun/app/base/unit"
)

// Facts are numbers that are known of the files of each setting.
type Facts map[string]map[string]float64

// Facts of every file; content adds others.
const (
	factFiles   = "files"
	factBytes   = "bytes"
	factPending = "pending" // files that are still to be made; never shown
)

// AddFile counts a file of a setting, a pending one without its bytes.
func (f Facts) AddFile(setting string, bytes int64, pending bool) {
	counted := content.Facts{factFiles: 1, factBytes: float64(bytes)}
	if pending {
		counted = content.Facts{factPending: 1}
	}
	f.addCounts(setting, counted)
}

// addCounts adds what was counted in one more file.
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

// factNames returns the facts of each parameter that is a file.
func (all Parameters) factNames() map[string][]string {
	names := map[string][]string{}
	for _, p := range all.Files() {
		names[p.Name] = slices.Concat([]string{factFiles, factBytes}, content.FactsOf(p.contentKind()))
	}
	return names
}

// factsOf returns facts as expressions read them: 0 where no file is given, unknown where
// one is still to be made or read.
func (all Parameters) factsOf(settings []strictjson.Member, facts Facts, unknown any) map[string]map[string]any {
	values := map[string]map[string]any{}
	for file, names := range all.factNames() {
		given := slices.ContainsFunc(settings, func(m strictjson.Member) bool { return m.Name == file && m.Value.Kind != strictjson.Null }) ||
			all.Named(file).Maker.Asked(settings)
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

// CountFaults returns a fault for each list that has too few files, or too many. It is
// for settings that name outputs, of which the schema does not know how many files they are.
func (all Parameters) CountFaults(facts Facts) (faults []fault.Field) {
	for _, p := range all {
		n, pending := int(facts[p.Name][factFiles]), int(facts[p.Name][factPending])
		switch {
		case !p.Many || n+pending == 0:
		case n+pending > p.most:
			faults = append(faults, fault.Field{Loc: []any{p.Name}, Type: "value", Msg: fmt.Sprintf("has %d files with those of outputs; at most %d can be used", n+pending, p.most)})
		case pending == 0 && n < p.least:
			faults = append(faults, fault.Field{Loc: []any{p.Name}, Type: "value", Msg: fmt.Sprintf("has %s with those of outputs; it needs at least %d", unit.Count(n, "file"), p.least)})
		}
	}
	return faults
}
