package seqprop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"molrun/app/engine/input"
	"molrun/app/engine/md"
	"molrun/app/engine/store"
)

// Options are the parameters of Run.
type Options struct {
	PH     float64
	Window int // length of profile windows, in residues
}

// mostProfiles is the maximum number of sequences with a profile.
const mostProfiles = 200

// reportEvery is the number of sequences between progress lines.
const reportEvery = 500

// columns are the columns of properties.csv and the metrics of metrics.json.
var columns = []struct {
	name   string
	digits int
	value  func(*Properties) float64
}{
	{"length", 0, func(p *Properties) float64 { return float64(p.Length) }},
	{"mass_Da", 2, func(p *Properties) float64 { return p.Mass }},
	{"charge", 3, func(p *Properties) float64 { return p.Charge }},
	{"pI", 3, func(p *Properties) float64 { return p.IsoelectricPoint }},
	{"extinction", 0, func(p *Properties) float64 { return p.Extinction }},
	{"extinction_disulfides", 0, func(p *Properties) float64 { return p.ExtinctionDisulfide }},
	{"hydropathy", 4, func(p *Properties) float64 { return p.Hydropathy }},
	{"aromatic", 4, func(p *Properties) float64 { return p.Aromatic }},
	{"fcr", 4, func(p *Properties) float64 { return p.Charged }},
	{"ncpr", 4, func(p *Properties) float64 { return p.NetCharge }},
	{"kappa", 4, func(p *Properties) float64 { return p.Kappa }},
	{"scd", 4, func(p *Properties) float64 { return p.ChargeDecoration }},
	{"disorder", 4, func(p *Properties) float64 { return p.Disorder }},
}

// Run writes the properties of all sequences of FASTA text below dir:
//
//   - properties.csv: one row per sequence; undefined values are empty
//   - composition.csv: percentage of each amino acid
//   - profiles/NAME.csv: windows along each of the first 200 sequences
//   - metrics.json: the metrics of a single sequence, or the number of sequences
func Run(ctx context.Context, fasta []byte, o Options, dir string, log io.Writer) error {
	records, wrong := input.Records(fasta)
	switch {
	case wrong != "":
		return fmt.Errorf("the FASTA file %s", wrong)
	case len(records) == 0:
		return errors.New("no sequences in the input")
	}
	if err := os.MkdirAll(filepath.Join(dir, "profiles"), 0o755); err != nil {
		return err
	}
	all := make([]Properties, len(records))
	composed := [][]string{append([]string{"name"}, strings.Split(md.Letters, "")...)}
	for k, name := range names(records) {
		if err := ctx.Err(); err != nil {
			return err
		}
		text := records[k].Letters
		all[k] = PropertiesOf(name, text, o.PH)
		switch note := all[k].Note; {
		case math.IsNaN(all[k].Hydropathy):
			store.Warn(log, name+": "+note)
		case note != "":
			fmt.Fprintf(log, "%s: %s\n", name, note)
		}
		composed = append(composed, percentages(name, text))
		if k < mostProfiles {
			if err := store.WriteCSV(filepath.Join(dir, "profiles", name+".csv"), profile(text, o.Window)); err != nil {
				return err
			}
		}
		if k%reportEvery == 0 {
			fmt.Fprintf(log, "molrun:progress %.4f %d of %d sequences\n", float64(k)/float64(len(records)), k, len(records))
		}
	}
	return errors.Join(
		store.WriteCSV(filepath.Join(dir, "composition.csv"), composed),
		store.WriteCSV(filepath.Join(dir, "properties.csv"), rows(all)),
		store.WriteJSON(filepath.Join(dir, "metrics.json"), jobMetrics(all)))
}

// names returns a valid and unique file name for each record, ignoring letter case.
func names(records []input.Record) []string {
	taken := map[string]bool{}
	all := make([]string, len(records))
	for k, r := range records {
		name := strings.TrimLeft(r.Name, ".")
		if name == "" {
			name = "sequence"
		}
		unique := name
		for n := 2; taken[strings.ToLower(unique)]; n++ {
			unique = name + "_" + strconv.Itoa(n)
		}
		taken[strings.ToLower(unique)] = true
		all[k] = unique
	}
	return all
}

// percentages returns a row of composition.csv.
func percentages(name, text string) []string {
	row := []string{name}
	for k := range md.Letters {
		share := math.NaN()
		if text != "" {
			share = 100 * float64(strings.Count(text, md.Letters[k:k+1])) / float64(len([]rune(text)))
		}
		row = append(row, number(share, 3))
	}
	return row
}

// profile returns the window means by central residue. Incomplete windows and windows
// with an unknown residue are left empty.
func profile(text string, window int) [][]string {
	table := [][]string{{"position", "residue", "hydropathy", "ncpr", "fcr"}}
	residues := []rune(text)
	for k, letter := range residues {
		row := []string{strconv.Itoa(k + 1), string(letter), "", "", ""}
		if first := k - window/2; first >= 0 && first+window <= len(residues) {
			part := string(residues[first : first+window])
			if _, position := firstUnknown(part); position == 0 {
				p := Properties{}
				p.ofComposition(part)
				row = append(row[:2], number(p.Hydropathy, 4), number(p.NetCharge, 4), number(p.Charged, 4))
			}
		}
		table = append(table, row)
	}
	return table
}

func rows(all []Properties) [][]string {
	head := []string{"name"}
	for _, c := range columns {
		head = append(head, c.name)
	}
	table := [][]string{append(head, "note")}
	for k := range all {
		row := []string{all[k].Name}
		for _, c := range columns {
			row = append(row, number(c.value(&all[k]), c.digits))
		}
		table = append(table, append(row, all[k].Note))
	}
	return table
}

// number formats a value, or returns "" if it is undefined.
func number(v float64, digits int) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

func jobMetrics(all []Properties) map[string]json.Number {
	figures := map[string]json.Number{"sequences": json.Number(strconv.Itoa(len(all)))}
	if len(all) == 1 {
		for _, c := range columns {
			if text := number(c.value(&all[0]), c.digits); text != "" {
				figures[c.name] = json.Number(text)
			}
		}
	}
	return figures
}
