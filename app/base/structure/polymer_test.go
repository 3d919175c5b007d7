package structure

import (
	"fmt"
	"strings"
	"testing"

	"molrun/app/test/must"
)

// moved returns the output of peptide with a different y coordinate.
func moved(text string, y int) string {
	return strings.ReplaceAll(text, "   0.000   0.000", fmt.Sprintf("%8.3f   0.000", float64(y)))
}

func unnamed(text string) string {
	lines := strings.Split(text, "\n")
	for k, line := range lines {
		if len(line) > 22 {
			lines[k] = line[:21] + " " + line[22:]
		}
	}
	return strings.Join(lines, "\n")
}

// cifOf writes the atoms of a PDB file as mmCIF, with a label_seq_id and an entity for
// each residue number.
func cifOf(text, more string, sequence, entity func(residue string) string) string {
	out := "data_x\n" + more + "loop_\n"
	for column := range strings.FieldsSeq("group_PDB label_atom_id label_comp_id auth_asym_id auth_seq_id Cartn_x Cartn_y Cartn_z label_seq_id label_entity_id") {
		out += "_atom_site." + column + "\n"
	}
	for line := range strings.Lines(text) {
		if w := strings.Fields(line[:54]); len(w) == 8 {
			out += fmt.Sprintf("%s %s %s %s %s %s %s %s", w[0], w[2], w[3], w[4][:1], w[4][1:]+w[5], w[6], w[7], "0")
		} else {
			out += fmt.Sprintf("%s %s %s %s %s %s %s %s", w[0], w[2], w[3], w[4], w[5], w[6], w[7], w[8])
		}
		name := strings.TrimSpace(line[17:20])
		out += " " + sequence(name) + " " + entity(name) + "\n"
	}
	return out
}

func TestPolymersLigandsAndWater(t *testing.T) {
	chain := peptide("ATOM GLY A1", "HETATM MSE A2", "ATOM ALA A3")
	glu := moved(peptide("HETATM GLU A501"), 30)
	waters := strings.Repeat(moved(peptide("HETATM HOH A9 O"), 40), 3)
	same := func(string) string { return "." }
	for name, tt := range map[string]struct{ text, want string }{
		"free amino acid behind TER":          {chain + "TER\n" + glu, "1 chain, 3 residues, 1 ligand (GLU), 1 modified residue (MSE)"},
		"free amino acid without TER":         {chain + glu, "1 chain, 3 residues, 1 ligand (GLU), 1 modified residue (MSE)"},
		"free amino acid, TER at the end":     {chain + waters + glu + waters + "TER\n", "1 chain, 3 residues, 1 ligand (GLU), 6 waters, 1 modified residue (MSE)"},
		"bound amino acids behind TER":        {chain + "TER\n" + moved(peptide("HETATM GLU A501", "HETATM GLY A502"), 30), "1 chain, 3 residues, 2 ligands (GLU, GLY), 1 modified residue (MSE)"},
		"beside a break, before TER":          {chain + glu + "TER\n", "1 chain, 4 residues, 1 modified residue (MSE)"},
		"between breaks":                      {chain + glu + moved(peptide("ATOM GLY A502"), 60), "1 chain, 5 residues, 1 modified residue (MSE)"},
		"free amino acid in front":            {glu + chain, "1 chain, 3 residues, 1 ligand (GLU), 1 modified residue (MSE)"},
		"one name twice, of other lengths":    {chain[243:] + "TER\n" + moved(chain, 30), "2 chains, 2 + 3 residues, 2 modified residues (MSE)"},
		"peptide of HETATM":                   {peptide("HETATM DAL C1", "HETATM MLE C2", "HETATM DVA C3") + "TER\n", "1 chain, 3 residues, 3 modified residues (DAL, MLE, DVA)"},
		"one amino acid in its chain":         {chain + "TER\n" + moved(peptide("HETATM GLU B1"), 30) + "TER\n", "1 chain, 3 residues, 1 ligand (GLU), 1 modified residue (MSE)"},
		"caps":                                {peptide("HETATM ACE A1 CH3 O C", "ATOM GLY A2", "HETATM NH2 A3 N"), "1 chain, 3 residues"},
		"chromophore":                         {peptide("ATOM PHE A64", "HETATM CRO A66 N1 CA1 C3", "ATOM VAL A68"), "1 chain, 3 residues, 1 modified residue (CRO)"},
		"no names, TER":                       {unnamed(chain + "TER\n" + moved(peptide("ATOM GLY A7"), 30)), "2 chains, 3 + 1 residues, 1 modified residue (MSE)"},
		"no names, falling":                   {unnamed(chain + moved(peptide("ATOM GLY A2", "ATOM GLY A3"), 30)), "2 chains, 3 + 2 residues, 1 modified residue (MSE)"},
		"no names, modified behind TER":       {unnamed(chain + "TER\n" + moved(chain[243:], 30)), "2 chains, 3 + 2 residues, 2 modified residues (MSE)"},
		"one name twice":                      {chain + moved(chain, 30), "2 chains, 3 + 3 residues, 2 modified residues (MSE)"},
		"a TER record at a break":             {chain + "TER\n" + moved(peptide("ATOM GLY A7", "HETATM MSE A8", "ATOM GLY A9"), 30), "1 chain, 6 residues, 2 modified residues (MSE)"},
		"waters of one number":                {waters, "3 waters"},
		"waters of one number at places":      {waters[:81] + moved(peptide("HETATM HOH A9 O/A O/B"), 46) + waters[:81] + moved(peptide("HETATM HOH A9 O/A O/B"), 52), "4 waters, 2 residues with alternate locations, of which the one with the highest occupancy is used"},
		"ions of one number":                  {strings.Repeat(peptide("HETATM ZN A9 ZN"), 3), "3 ligands (ZN)"},
		"ligands of one number":               {peptide("HETATM LIG A9 C1 C2 O") + moved(peptide("HETATM LIG A9 C1 C2 O"), 30), "2 ligands (LIG)"},
		"ligands of one number at places":     {peptide("HETATM LIG A9 C1/A C1/B") + glu + moved(peptide("HETATM LIG A9 C1/A C1/B"), 9), "3 ligands (LIG, GLU), 2 residues with alternate locations, of which the one with the highest occupancy is used"},
		"ligands of one number, side by side": {peptide("HETATM LIG A9 C1 C2") + glu + moved(peptide("HETATM LIG A9 C3 C4"), 9), "3 ligands (LIG, GLU)"},
		"a ligand with elements for names":    {peptide("HETATM LIG A9 C C O") + moved(peptide("HETATM LIG A9 C N O"), 30), "1 ligand (LIG)"},
		"hydrogens at the end":                {chain + "TER\n" + peptide("ATOM GLY A1 H"), "1 chain, 3 residues, 1 modified residue (MSE)"},
		"another residue instead":             {peptide("ATOM GLY A1", "ATOM SER A2 N/A CA/A C/A", "ATOM THR A2 N/B CA/B C/B"), "1 chain, 2 residues, 1 residue with alternate locations, of which the one with the highest occupancy is used"},
		"entities":                            {cifOf(chain+glu, "loop_ _entity.id _entity.type 1 polymer 2 non-polymer\n", same, func(r string) string { return map[bool]string{true: "2", false: "1"}[r == "GLU"] }), "1 chain, 3 residues, 1 ligand (GLU), 1 modified residue (MSE)"},
		"an entity":                           {cifOf(glu, "_entity.id 2 _entity.type polymer\n", same, func(string) string { return "2" }), "1 chain, 1 residue"},
		"numbers in the sequence":             {cifOf(chain+peptide("HETATM GLU A4"), "", func(r string) string { return map[bool]string{true: ".", false: "1"}[r == "GLU"] }, same), "1 chain, 3 residues, 1 ligand (GLU), 1 modified residue (MSE)"},
		"no residue has a number in sequence": {cifOf(chain+glu, "", same, same), "1 chain, 3 residues, 1 ligand (GLU), 1 modified residue (MSE)"},
		"nothing":                             {"", "no atoms"},
	} {
		m, err := Read(strings.NewReader(tt.text))
		must.OK(t, err)
		must.Equal(t, name, m.Summary(), tt.want)
	}
}
