package structsum

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"molrun/app/base/structure"
	"molrun/app/engine/store"
)

// mostInMap is the maximum number of residues in a distance matrix.
const mostInMap = 1500

// Run writes a summary of a PDB or mmCIF file below dir:
//
//   - chains.csv, gaps.csv, ligands.csv: one row per item
//   - residues.csv: the residues of proteins, with mean B factor and number of contacts
//   - contacts.csv: pairs of residues with heavy atoms within the cutoff (Å) that are at
//     least 4 apart in their chain
//   - distances.csv: the matrix of alpha carbon distances, up to 1,500 residues
//   - summary.txt: a textual summary
//   - metrics.json: the metrics, except those that do not apply to the structure
func Run(ctx context.Context, file io.Reader, cutoff float64, dir string, log io.Writer) error {
	s, err := readStructure(file)
	if err != nil {
		return err
	}
	r := &report{folder: dir, model: s, proteins: s.residuesOf(structure.Protein)}
	nearby := slices.DeleteFunc(slices.Clone(s.residues), func(x *residue) bool { return x.Kind == structure.Water })
	r.contacts = contacts(nearby, cutoff)
	if err := ctx.Err(); err != nil {
		return err
	}
	r.fold = folding(slices.DeleteFunc(slices.Clone(r.contacts), func(c contact) bool { return c.a.Kind != structure.Protein || c.b.Kind != structure.Protein }))
	for _, c := range r.model.chains {
		r.gaps = append(r.gaps, c.gaps()...)
	}
	text := r.sentences(log)
	return errors.Join(
		r.writeChains(), r.writeGaps(), r.writeLigands(), r.writeResidues(), r.writeContacts(), r.writeDistances(),
		store.WriteFile(filepath.Join(dir, "summary.txt"), []byte(text)), r.writeMetrics(),
	)
}

// report is the data that Run writes.
type report struct {
	folder         string
	model          *model
	proteins       []*residue
	gaps           []gap
	contacts, fold []contact // excluding water; proteins only, without neighbors along the chain
}

func (r *report) writeTable(name string, rows [][]string) error {
	return store.WriteCSV(filepath.Join(r.folder, name), rows)
}

func (r *report) writeChains() error {
	rows := [][]string{{"chain", "kind", "residues", "first", "last", "gaps", "missing", "not_standard", "incomplete_backbone", "sequence"}}
	for _, c := range r.model.chains {
		gaps, missing := c.gaps(), 0
		for _, g := range gaps {
			missing += g.missing
		}
		rows = append(rows, []string{
			c.ID(), string(c.Kind), strconv.Itoa(len(c.residues)), c.residues[0].Label(), c.residues[len(c.residues)-1].Label(),
			strconv.Itoa(len(gaps)), strconv.Itoa(missing), strings.Join(c.unusual(), " "), strings.Join(c.incomplete(), " "), c.sequence(),
		})
	}
	return r.writeTable("chains.csv", rows)
}

func (r *report) writeGaps() error {
	rows := [][]string{{"chain", "before", "after", "missing", "distance_A"}}
	for _, g := range r.gaps {
		length := ""
		if g.distance > 0 {
			length = decimal(g.distance, 2)
		}
		rows = append(rows, []string{g.before.ChainID(), g.before.Name + g.before.Label(), g.after.Name + g.after.Label(), strconv.Itoa(g.missing), length})
	}
	return r.writeTable("gaps.csv", rows)
}

func (r *report) writeLigands() error {
	beside := map[*residue][]string{}
	for _, c := range r.contacts {
		for _, pair := range [][2]*residue{{c.a, c.b}, {c.b, c.a}} {
			if pair[0].Kind == structure.Ligand && pair[1].Kind != structure.Ligand {
				beside[pair[0]] = append(beside[pair[0]], pair[1].String())
			}
		}
	}
	rows := [][]string{{"ligand", "chain", "number", "heavy_atoms", "neighbours", "residues"}}
	for _, l := range r.model.residuesOf(structure.Ligand) {
		rows = append(rows, []string{l.Name, l.ChainID(), l.Label(), strconv.Itoa(len(l.atoms)), strconv.Itoa(len(beside[l])), strings.Join(beside[l], " ")})
	}
	return r.writeTable("ligands.csv", rows)
}

func (r *report) writeResidues() error {
	touching := map[*residue]int{}
	for _, c := range r.fold {
		touching[c.a]++
		touching[c.b]++
	}
	rows := [][]string{{"index", "chain", "number", "name", "letter", "heavy_atoms", "b", "contacts"}}
	for k, x := range r.proteins {
		rows = append(rows, []string{
			strconv.Itoa(k + 1), x.ChainID(), x.Label(), x.Name, x.Letter(), strconv.Itoa(len(x.atoms)),
			decimal(meanB([]*residue{x}), 2), strconv.Itoa(touching[x]),
		})
	}
	return r.writeTable("residues.csv", rows)
}

func (r *report) writeContacts() error {
	rows := [][]string{{"chain_1", "residue_1", "chain_2", "residue_2", "distance_A"}}
	for _, c := range r.fold {
		rows = append(rows, []string{c.a.ChainID(), c.a.Name + c.a.Label(), c.b.ChainID(), c.b.Name + c.b.Label(), decimal(c.distance, 2)})
	}
	return r.writeTable("contacts.csv", rows)
}

// writeDistances writes the matrix, with rows and columns labeled by chain and number.
func (r *report) writeDistances() error {
	var traced []*residue
	for _, x := range r.proteins {
		if x.atom("CA") != nil {
			traced = append(traced, x)
		}
	}
	if len(traced) < 2 || len(traced) > mostInMap {
		return nil
	}
	rows := make([][]string, len(traced)+1)
	rows[0] = []string{"residue"}
	for k, a := range traced {
		name := cmp.Or(a.ChainID(), "-") + " " + a.Label()
		rows[0], rows[k+1] = append(rows[0], name), []string{name}
		for _, b := range traced {
			rows[k+1] = append(rows[k+1], decimal(structure.Distance(a.atom("CA"), b.atom("CA")), 2))
		}
	}
	return r.writeTable("distances.csv", rows)
}

func meanB(residues []*residue) float64 {
	sum, n := 0.0, 0
	for _, r := range residues {
		for _, a := range r.atoms {
			sum += a.B
			n++
		}
	}
	return sum / float64(n)
}

func (r *report) writeMetrics() error {
	s := r.model
	missing := 0
	for _, g := range r.gaps {
		missing += g.missing
	}
	figures := map[string]json.Number{}
	count := func(name string, n int) { figures[name] = json.Number(strconv.Itoa(n)) }
	count("models", s.Models)
	count("chains", len(r.model.chains))
	count("ligands", len(s.residuesOf(structure.Ligand)))
	count("waters", len(s.residuesOf(structure.Water)))
	count("residues", len(r.proteins))
	if len(r.proteins) > 0 {
		count("gaps", len(r.gaps))
		count("missing_residues", missing)
		count("disulfides", len(disulfides(r.proteins)))
		count("contacts", len(r.fold))
		figures["rg_A"] = json.Number(decimal(radiusOfGyration(r.proteins), 3))
		figures["mean_b"] = json.Number(decimal(meanB(r.proteins), 2))
	}
	return store.WriteJSON(filepath.Join(r.folder, "metrics.json"), figures)
}

func decimal(v float64, digits int) string {
	return strconv.FormatFloat(math.Round(v*math.Pow10(digits))/math.Pow10(digits), 'f', digits, 64)
}
