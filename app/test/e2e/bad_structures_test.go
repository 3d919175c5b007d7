package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"

	"molrun/app/algorithm"
	"molrun/app/algorithm/content"
	"molrun/app/base/structure"
)

// structureForm is a variant of a structure file that a well-meaning user might submit.
type structureForm struct {
	what     string
	harmless bool // the job can complete, with the same metrics as the example
	of       func(lines []string) string
}

// structureForms are applied to every structure file.
var structureForms = []structureForm{
	{"no number", false, func(lines []string) string { return strings.Join(changedAtom(lines, 3, "     nan"), "\n") }},
	{"infinite", false, func(lines []string) string { return strings.Join(changedAtom(lines, 3, "     inf"), "\n") }},
	{"overflown", false, func(lines []string) string { return strings.Join(changedAtom(lines, 3, "********"), "\n") }},
	{"one point", false, eachAtom(func(line string) string { return line[:30] + "  10.000  10.000  10.000" + line[54:] })},
	{"overlapping", false, func(lines []string) string {
		return strings.Join(append(lines, shifted(lines, "B", 0.1)...), "\n") + "\n"
	}},
	{"hydrogens", false, eachAtom(func(line string) string { return line[:12] + " H  " + line[16:76] + " H" })},
	{"water", false, eachAtom(func(line string) string { return "HETATM" + line[6:12] + " O   HOH" + line[20:76] + " O" })},
	{"DNA", false, eachAtom(func(line string) string { return line[:17] + " DA" + line[20:] })},
	{"alpha carbons", false, only(" CA ")},
	{"side chains", false, func(lines []string) string {
		return strings.Join(slices.DeleteFunc(lines, func(line string) bool {
			return isAtom(line) && slices.Contains([]string{" N  ", " CA ", " C  ", " O  "}, line[12:16])
		}), "\n") + "\n"
	}},
	{"unknown residue", false, func(lines []string) string {
		number := ""
		return eachAtom(func(line string) string {
			if number == "" {
				number = line[22:26]
			}
			if line[22:26] == number {
				return line[:17] + "XYZ" + line[20:]
			}
			return line
		})(lines)
	}},
	{"packed", true, func(lines []string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write([]byte(strings.Join(lines, "\n"))) // a bytes.Buffer cannot fail
		_ = w.Close()
		return b.String()
	}},
	{"of an old Mac", true, func(lines []string) string { return strings.Join(lines, "\r") }},
	{"byte order mark", true, func(lines []string) string { return "\uFEFF" + strings.Join(lines, "\n") + "\n" }},
	{"of Windows", true, func(lines []string) string { return strings.Join(lines, "\r\n") }},
	{"mmCIF", true, mmcif},
	{"two models", true, func(lines []string) string {
		return "MODEL        1\n" + strings.Join(lines, "\n") + "\nENDMDL\nMODEL        2\n" + strings.Join(shifted(lines, "A", 3), "\n") + "\nENDMDL\nEND\n"
	}},
	{"long line", true, func(lines []string) string {
		return "REMARK " + strings.Repeat("x", 10<<20) + "\n" + strings.Join(lines, "\n") + "\n"
	}},
}

func isAtom(line string) bool { return strings.HasPrefix(line, "ATOM") }

// eachAtom returns a function that changes each atom record. All have 80 columns.
func eachAtom(change func(line string) string) func([]string) string {
	return func(lines []string) string {
		var out strings.Builder
		for _, line := range lines {
			if isAtom(line) {
				line = change(fmt.Sprintf("%-80s", line))
			}
			out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		return out.String()
	}
}

func only(name string) func([]string) string {
	return func(lines []string) string {
		return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return isAtom(line) && line[12:16] != name }), "\n") + "\n"
	}
}

// changedAtom replaces the x coordinate of the nth atom.
func changedAtom(lines []string, n int, x string) []string {
	for i, line := range lines {
		if isAtom(line) {
			if n--; n == 0 {
				lines[i] = line[:30] + x + line[38:]
			}
		}
	}
	return lines
}

// shifted returns the atoms as another chain, moved along x by the given number of Å.
func shifted(lines []string, chain string, by float64) (out []string) {
	for _, line := range lines {
		if isAtom(line) {
			var x float64
			_, _ = fmt.Sscan(line[30:38], &x) // example files have valid coordinates
			out = append(out, line[:21]+chain+line[22:30]+fmt.Sprintf("%8.3f", x+by)+line[38:])
		}
	}
	return out
}

// mmcif returns the atoms in mmCIF format.
func mmcif(lines []string) string {
	var out strings.Builder
	out.WriteString("data_X\nloop_\n")
	for _, column := range []string{"group_PDB", "id", "type_symbol", "label_atom_id", "label_alt_id", "label_comp_id", "label_asym_id", "label_entity_id", "label_seq_id", "auth_seq_id", "auth_asym_id", "pdbx_PDB_ins_code", "Cartn_x", "Cartn_y", "Cartn_z", "occupancy", "B_iso_or_equiv", "pdbx_PDB_model_num"} {
		out.WriteString("_atom_site." + column + "\n")
	}
	n := 0
	m, _ := structure.Read(strings.NewReader(strings.Join(lines, "\n"))) // example files are valid
	for _, r := range m.Residues {
		for _, a := range r.Atoms {
			n++
			fmt.Fprintf(&out, "ATOM %d %s %s . %s A 1 %d %d %s ? %.3f %.3f %.3f 1.00 %.2f 1\n", n, a.Element, a.Name, r.Name, r.Number, r.Number, r.Chain, a.Position[0], a.Position[1], a.Position[2], a.B)
		}
	}
	out.WriteString("#\n")
	return out.String()
}

// structures returns cases with the example's structure in every form, for a parameter
// that accepts a structure file.
func (b *trials) structures(a *algorithm.File, p *algorithm.Parameter, example map[string]any) (all []*trialCase) {
	b.t.Helper()
	if want := p.Content(); want == nil || want.Kind != content.Structure && want.Kind != content.ProteinStructure {
		return nil
	}
	text := b.given(a, p, example)
	if text == nil {
		return nil
	}
	for _, form := range structureForms {
		name := fmt.Sprintf("forms/%s/%s/%s/bad%s", a.Type, p.Name, strings.ReplaceAll(form.what, " ", "-"), p.File[0])
		lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.HasPrefix(line, "TER") || strings.HasPrefix(line, "END") })
		file := b.file(name, func() []byte { return []byte(form.of(lines)) })
		all = append(all, &trialCase{algorithm: a, name: p.Name + ": " + form.what, settings: changed(p, example, file), harmless: form.harmless})
	}
	return all
}

// acceptableMetrics returns the bounds of the metrics of an acceptable result, or nil if
// no result is acceptable.
func (c *trialCase) acceptableMetrics() map[string][2]float64 {
	switch {
	case c.wanted != nil:
		return c.wanted.Completed
	case c.harmless:
		return c.algorithm.Example.Metrics
	}
	return nil
}

func (c *trialCase) checkMetrics(t *testing.T, r record) {
	t.Helper()
	for name, bounds := range c.acceptableMetrics() {
		if v, ok := r.Metrics.Results[name].(float64); !ok || v < bounds[0] || v > bounds[1] {
			t.Errorf("%s: it is COMPLETED with %s = %v, outside of %v", c, name, r.Metrics.Results[name], bounds)
		}
	}
	if c.wanted != nil && !strings.Contains(strings.Join(r.Warnings, "\n"), c.wanted.Warned) {
		t.Errorf("%s: its warnings are %q, want %q in them", c, r.Warnings, c.wanted.Warned)
	}
}
