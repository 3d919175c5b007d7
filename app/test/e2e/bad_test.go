package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"molrun/app/algorithm"
	"molrun/app/algorithm/builtin"
	"molrun/app/test/must"
)

// badRow is a case in testdata/bad/<type>.toml: the changes to the type's example, and
// the required outcome. web/docs/format.md explains how to write one.
type badRow struct {
	Name     string
	Settings map[string]any
	Files    map[string]badFile
	Without  []string // settings to omit
	Refused  string   // the setting that must be rejected
	Failed   string   // part of the failure message

	// Completed has the lower and upper bounds of metrics, for input that looks odd but
	// is valid.
	Completed map[string][2]float64
	Warned    string // part of the warning that a completed job must have
}

// ends counts the outcomes that a case requires.
func (r badRow) ends() (n int) {
	for _, said := range []bool{r.Refused != "", r.Failed != "", r.Completed != nil} {
		if said {
			n++
		}
	}
	return n
}

// badFile is a file to create for a case.
type badFile struct {
	Name    string     // default: bad and the first extension of the parameter
	Text    string     // content of the file, instead of From
	From    string     // an example file to copy
	Lines   int        // number of lines to keep from the start; 0 keeps all
	Drop    []string   // lines that contain one of these strings are removed
	Replace [][]string // pairs of old and new strings
}

// badFileOf is the content of testdata/bad/<type>.toml.
type badFileOf struct {
	Bad []badRow

	// Fine gives the reasons why some generic cases can complete. A key is one case, such
	// as "query: half", or a parameter, such as "query", for all its cases.
	Fine map[string]string
}

// bad reads testdata/bad/<type>.toml.
func (b *trials) bad(a *algorithm.File) badFileOf {
	b.t.Helper()
	var all badFileOf
	text, err := os.ReadFile(filepath.Join("testdata", "bad", a.Type+".toml"))
	if os.IsNotExist(err) {
		return all
	}
	must.OK(b.t, err)
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&all); err != nil {
		b.t.Fatalf("testdata/bad/%s.toml: %v", a.Type, err)
	}
	return all
}

// rows returns the cases in the file of a type.
func (b *trials) rows(a *algorithm.File, example map[string]any, own badFileOf) []*trialCase {
	b.t.Helper()
	var all []*trialCase
	for _, row := range own.Bad {
		c := &trialCase{algorithm: a, name: row.Name, settings: example, wanted: &row}
		if row.Name == "" || row.ends() != 1 {
			b.t.Errorf("testdata/bad/%s.toml: the row %q needs a name and one of refused, failed and completed", a.Type, row.Name)
		}
		for name, value := range row.Settings {
			c.settings = changed(&algorithm.Parameter{Name: name}, dropped(c.settings, name), value)
		}
		for name, f := range row.Files {
			p := a.Parameters.Named(name)
			if p == nil || len(p.File) == 0 {
				b.t.Fatalf("testdata/bad/%s.toml: %s has no file %q", a.Type, a.Type, name)
			}
			c.settings = changed(p, c.settings, b.made(a, p, row.Name, f))
		}
		for _, name := range row.Without {
			c.settings = dropped(c.settings, name)
		}
		all = append(all, c)
	}
	return all
}

func dropped(settings map[string]any, name string) map[string]any {
	out := map[string]any{}
	for k, v := range settings {
		if k != name {
			out[k] = v
		}
	}
	return out
}

// made creates and uploads the file of a case.
func (b *trials) made(a *algorithm.File, p *algorithm.Parameter, row string, f badFile) string {
	b.t.Helper()
	if f.Name == "" {
		f.Name = "bad" + p.File[0]
	}
	text := f.Text
	if f.From != "" {
		content, err := builtin.ExampleOf(a, f.From)
		must.OK(b.t, err)
		text = string(content)
	}
	if f.Lines > 0 {
		lines := strings.SplitAfter(text, "\n")
		text = strings.Join(lines[:min(f.Lines, len(lines))], "")
	}
	for _, drop := range f.Drop {
		text = dropLines(text, drop)
	}
	for _, pair := range f.Replace {
		if !strings.Contains(text, pair[0]) {
			b.t.Errorf("testdata/bad/%s.toml: %q: the file has no %q", a.Type, row, pair[0])
		}
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return b.file(fmt.Sprintf("rows/%s-%d/%s", a.Type, len(b.files), f.Name), func() []byte { return []byte(text) })
}

func dropLines(text, with string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !strings.Contains(line, with) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// generic returns the cases that are the same for every file and number of every type.
func (b *trials) generic(a *algorithm.File, example map[string]any) []*trialCase {
	b.t.Helper()
	var all []*trialCase
	for i := range a.Parameters {
		p := &a.Parameters[i]
		if len(p.File) == 0 {
			for what, value := range wrongValues(p) {
				all = append(all, &trialCase{
					algorithm: a, name: p.Name + ": " + what, settings: changed(&algorithm.Parameter{Name: p.Name}, dropped(example, p.Name), value),
					wanted: &badRow{Refused: p.Name},
				})
			}
			continue
		}
		for _, f := range genericFiles {
			if f.what == "million" && *trialRuns > 0 && b.random.IntN(30) > 0 {
				continue // each takes several seconds
			}
			name := "generic/" + f.what + "/" + f.name + p.File[0]
			var half []byte
			if f.what == "half" {
				if half = b.half(a, p, example); len(half) == 0 {
					continue
				}
				name = "half/" + a.Type + "/" + p.Name + p.File[0]
			}
			text := func() []byte {
				if half != nil {
					return half
				}
				return f.text(p.File[0])
			}
			c := &trialCase{algorithm: a, name: p.Name + ": " + f.what, settings: changed(p, example, b.file(name, text))}
			if f.what == "million" {
				c.seconds = 60
			}
			all = append(all, c)
		}
		all = append(all, b.structures(a, p, example)...)
	}
	return all
}

// wrongValues returns invalid values for a setting, by description.
func wrongValues(p *algorithm.Parameter) map[string]any {
	var schema struct {
		Type    any
		Minimum *float64
		Maximum *float64
		Above   *float64 `json:"exclusiveMinimum"`
	}
	if json.Unmarshal(p.Schema, &schema) != nil {
		return nil
	}
	wrong := map[string]any{}
	switch schema.Type {
	case "number", "integer", "boolean":
		wrong["a text"] = "a text"
		wrong["a list"] = []any{1}
	case "string":
		wrong["a number"] = 1
	case "array", "object":
		wrong["a number"] = 1
	}
	for what, bound := range map[string]*float64{"below its minimum": schema.Minimum, "its lower bound": schema.Above} {
		switch {
		case bound == nil:
		case what == "its lower bound":
			wrong[what] = *bound
		default:
			wrong[what] = *bound - 1
		}
	}
	if schema.Maximum != nil {
		wrong["above its maximum"] = *schema.Maximum + 1
	}
	return wrong
}

// genericFiles are files that no type can use as input.
var genericFiles = []struct {
	what, name string
	text       func(ext string) []byte
}{
	{"empty", "empty", func(string) []byte { return nil }},
	{"blank", "blank", func(string) []byte { return []byte("\n \n\t\n\n") }},
	{"prose", "prose", func(string) []byte {
		return []byte("Dear colleague,\n\nplease find the structure attached to my next message.\n")
	}},
	{"bytes", "bytes", func(string) []byte {
		random := rand.New(rand.NewPCG(1, 2))
		text := make([]byte, 5000)
		for i := range text {
			text[i] = byte(random.Uint32())
		}
		return text
	}},
	{"web page", "page", func(string) []byte {
		return []byte("<!DOCTYPE html>\n<html><head><title>404</title></head>\n<body><h1>Not Found</h1><p>The entry 1ABC does not exist.</p></body></html>\n")
	}},
	{"half", "half", nil},
	{"million", "million", million},
}

// given returns the file in the example, or the first file of a list. It returns nil if
// there is none.
func (b *trials) given(a *algorithm.File, p *algorithm.Parameter, example map[string]any) []byte {
	b.t.Helper()
	if example[p.Name] == nil {
		return nil
	}
	var named map[string]any
	must.OK(b.t, json.Unmarshal(a.Example.Settings, &named))
	value := named[p.Name]
	if list, ok := value.([]any); ok && len(list) > 0 {
		value = list[0]
	}
	name, _ := strings.CutPrefix(fmt.Sprint(value), "example:")
	text, err := builtin.ExampleOf(a, name)
	must.OK(b.t, err)
	return text
}

// half returns the first half of the file in the example, or nil if there is none.
func (b *trials) half(a *algorithm.File, p *algorithm.Parameter, example map[string]any) []byte {
	b.t.Helper()
	half := b.given(a, p, example)
	half = half[:len(half)/2]
	if i := bytes.LastIndex(half, []byte("\nATOM  ")); i > 0 {
		half = half[:min(i+40, len(half))] // cut within a coordinate, since a structure cut after an atom is valid
	}
	return half
}

// million returns a file of a million residues or records.
func million(ext string) []byte {
	const n = 1_000_000
	var text bytes.Buffer
	switch strings.TrimSuffix(ext, ".gz") {
	case ".pdb", ".ent", ".pqr":
		for i := range n {
			fmt.Fprintf(&text, "ATOM  %5d  CA  ALA A%4d    %8.3f%8.3f%8.3f  1.00  0.00           C\n", i%100000, i%10000, float64(i%1000), float64(i/1000%1000), float64(i/1e6))
		}
		text.WriteString("END\n")
	case ".cif", ".mmcif":
		text.WriteString("data_x\nloop_\n")
		for _, column := range []string{"group_PDB", "id", "label_atom_id", "label_comp_id", "label_asym_id", "label_seq_id", "Cartn_x", "Cartn_y", "Cartn_z"} {
			text.WriteString("_atom_site." + column + "\n")
		}
		for i := range n {
			fmt.Fprintf(&text, "ATOM %d CA ALA A %d %d %d 0\n", i, i, i%1000, i/1000)
		}
	case ".smi", ".smiles", ".txt", ".csv", ".tsv":
		text.WriteString(strings.Repeat("CCO\n", n))
	default:
		text.WriteString(">long\n" + strings.Repeat("MKVLAAGIVGLLLAQWERTYPSDFGHKLNCVM", n/32) + "\n")
	}
	return text.Bytes()
}

// bare matches a failure message that says only how the program ended.
var bare = regexp.MustCompile(`^The program[^.]*(ended with exit status \d+|was ended by signal \w+)\.?( Last output:)?\s*$`)

// A bad input produces no result: it is rejected with the setting named, or the job fails
// with an explanation.
func TestBadInputsBecomeNoResult(t *testing.T) {
	t.Parallel()
	b := newTrials(t, "auto")
	fine := map[string]bool{}
	var submitted []*trialCase
	count := 0
	for _, a := range b.types {
		example, own := b.example(a), b.bad(a)
		for name := range own.Fine {
			fine[a.Type+": "+name] = true
		}
		rows, generic := b.rows(a, example, own), b.generic(a, example)
		count += len(rows) + len(generic)
		for _, c := range slices.Concat(rows, generic) {
			if refused := b.refused(c); !refused && c.wanted != nil && c.wanted.Refused != "" {
				t.Errorf("%s: it is not refused", c)
			} else if !refused {
				submitted = append(submitted, c)
				continue
			}
			t.Logf("%s: refused: %.300s", c, c.refusal)
			c.checkRefusal(t)
		}
	}
	all := len(submitted)
	submitted = b.sample(submitted)
	t.Logf("%d of %d bad inputs were refused, %d of the others are submitted", count-all, count, len(submitted))
	b.run(submitted, func(c *trialCase, r record) {
		if r.Failure != nil {
			t.Logf("%s: %s", c, r.Failure.Message)
		}
		switch {
		case r.Status == "COMPLETED" && c.acceptableMetrics() != nil:
			c.checkMetrics(t, r)
		case r.Status == "COMPLETED" && !fine[c.String()] && !fine[c.algorithm.Type+": "+c.parameter()] && !mayBeFine(c):
			t.Errorf("%s: it has become a result, with %v", c, r.Metrics.Results)
		case r.Status == "FAILED" && bare.MatchString(r.Failure.Message):
			t.Errorf("%s: its user reads only %q; log:\n%s", c, r.Failure.Message, r.Failure.LogTail)
		case r.Status == "FAILED" && c.wanted != nil && (c.wanted.Completed != nil || !strings.Contains(r.Failure.Message, c.wanted.Failed)):
			t.Errorf("%s: the message is %q, want %q in it", c, r.Failure.Message, c.wanted.Failed)
		}
	})
}

// mayBeFine reports whether a generic case can be valid input: half a list of sequences
// is still a list of sequences, and some programs accept a million of them.
func mayBeFine(c *trialCase) bool {
	if c.wanted != nil {
		return false
	}
	_, what, _ := strings.Cut(c.name, ": ")
	p := c.algorithm.Parameters.Named(c.parameter())
	structure := slices.ContainsFunc(p.File, func(ext string) bool { return slices.Contains([]string{".pdb", ".cif", ".sdf", ".mol2"}, ext) })
	return what == "million" || what == "half" && !structure
}

// parameter returns the name of the parameter that a generic case changes.
func (c *trialCase) parameter() string {
	name, _, _ := strings.Cut(c.name, ": ")
	return name
}

// checkRefusal checks that the right setting is rejected.
func (c *trialCase) checkRefusal(t *testing.T) {
	t.Helper()
	switch {
	case c.wanted == nil || c.refusal == "":
	case c.wanted.Completed != nil:
		t.Errorf("%s: it is proper, and is refused: %s", c, c.refusal)
	case c.wanted.Refused == "":
		t.Errorf("%s: it is refused, and should fail with %q: %s", c, c.wanted.Failed, c.refusal)
	case !strings.Contains(c.refusal, `"`+c.wanted.Refused+`"`):
		t.Errorf("%s: it is refused elsewhere than at %s: %s", c, c.wanted.Refused, c.refusal)
	}
}
