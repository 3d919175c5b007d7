package content

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app/base/structure"
	"molrun/app/test/must"
)

const pdb = `HEADER    A
ATOM      1  N   ALA A   1      11.104   6.134  -6.504  1.00 10.00           N
ATOM      2  CA  ALA A   1      11.639   6.071  -5.147  1.00 80.00           C
ATOM      3  CA  MSE A   2      11.639   6.071  -5.147  1.00 90.00           C
HETATM    4 CA    CA A   3      11.639   6.071  -5.147  1.00  1.00          CA
END
`

var atoms = strings.TrimSuffix(pdb, "END\n")

const cif = `data_X
#
loop_
_atom_site.group_PDB
_atom_site.id
_atom_site.label_atom_id
_atom_site.label_comp_id
_atom_site.label_asym_id
_atom_site.label_seq_id
_atom_site.Cartn_x
_atom_site.Cartn_y
_atom_site.Cartn_z
_atom_site.pdbx_PDB_model_num
ATOM 1 N ALA A 1 1.0 2.0 3.0 1
ATOM 2 "C1'" ALA A 1 2.0 2.0 3.0 1
ATOM 3 CA GLY A 2 1.0 3.0 3.0 1
ATOM 4 CA GLY A 3 1.0 2.0 3.0 2
#
`

const v3000 = `x
  RDKit          2D

  0  0  0     0  0            999 V3000
M  V30 BEGIN CTAB
M  V30 COUNTS 3 2 0 0 0
M  V30 BEGIN ATOM
M  V30 1 C 0 0 0 0
M  V30 2 H 0 0 1 0
M  V30 3 O 0 1 0 0
M  V30 END ATOM
M  V30 BEGIN BOND
M  V30 1 1 1 2
M  V30 END BOND
M  V30 END CTAB
M  END
$$$$
`

const sdf = `ethanol
  RDKit          3D

  3  2  0  0  0  0  0  0  0  0999 V2000
    1.0000    0.0000    0.0000 C   0  0
    2.0000    0.0000    0.0000 C   0  0
    3.0000    0.0000    0.0000 O   0  0
  1  2  1  0
  2  3  1  0
M  END
$$$$
`

const dna = "ACGTTGCAACGTTGCAACGTTGCA"

func packed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func TestContent(t *testing.T) {
	tests := []struct {
		name, text string
		want       Want
		mistakes   string // "" if none
	}{
		{"PDB", pdb, Want{Kind: ProteinStructure}, ""},
		{"PDB, packed", packed(pdb), Want{Kind: ProteinStructure, Packed: true}, ""},
		{"with letters of Windows", strings.Replace(pdb, "HEADER    A", "HEADER    \xb0", 1), Want{Kind: ProteinStructure, AcceptsTextVariants: true}, ""},
		{"with letters of Windows for a program that takes UTF-8", strings.Replace(pdb, "HEADER    A", "HEADER    \xb0", 1), Want{Kind: ProteinStructure}, "is not plain text: line 1 has invalid characters"},
		{"two structures", pdb + strings.Replace(pdb, " N   ALA A   1", " N   GLY A   9", 1), Want{Kind: Structure}, "has atoms after END in line 6 that are not another model"},
		{"no protein but an amino acid", strings.Replace(strings.Replace(pdb[:81+10], "ATOM  ", "HETATM", 1), "ALA A   1", "GLU A 501", 1), Want{Kind: ProteinStructure}, "has 1 atoms but no protein"},
		{"packed for a program that can't unpack", packed(pdb), Want{Kind: ProteinStructure}, "is compressed with gzip"},
		{"PDB of Windows", strings.ReplaceAll(pdb, "\n", "\r\n"), Want{Kind: ProteinStructure, MinResidues: 2, MaxResidues: 2, MaxAtoms: 4}, ""},
		{"too few residues", pdb, Want{Kind: ProteinStructure, MinResidues: 3}, "has 2 residues; it needs at least 3"},
		{"too many residues", pdb, Want{Kind: ProteinStructure, MaxResidues: 1}, "has 2 residues; the maximum is 1"},
		{"too many atoms", pdb, Want{Kind: Structure, MaxAtoms: 3}, "has 4 atoms; the maximum is 3"},
		{"first model", strings.Replace(pdb, "END", "ENDMDL\nATOM  ", 1), Want{Kind: ProteinStructure}, ""},
		{"empty", "", Want{Kind: ProteinStructure}, "is empty"},
		{"text", "hello\nworld\n", Want{Kind: ProteinStructure}, "has no atoms"},
		{"no protein", strings.NewReplacer("ALA", "HOH", "MSE", "HOH").Replace(pdb), Want{Kind: ProteinStructure}, "has 4 atoms but no protein"},
		{"any structure", strings.NewReplacer("ALA", "HOH", "MSE", "HOH").Replace(pdb), Want{Kind: Structure}, ""},
		{"bad coordinate", strings.Replace(pdb, "11.639", "  nan ", 1), Want{Kind: ProteinStructure}, "has no valid coordinate in columns 31 to 38 of line 3"},
		{"truncated", pdb[:130], Want{Kind: ProteinStructure}, "is truncated in line 3"},
		{"binary", "ATOM  \x00", Want{Kind: ProteinStructure}, "is not plain text: line 1"},
		{"damaged gzip", packed(strings.Repeat(pdb, 100))[:200], Want{Kind: ProteinStructure, Packed: true}, "is a damaged gzip file"},
		{"hydrogens alone", strings.NewReplacer(" N  ", " H  ", " CA ", " HA ", "  N\n", "  H\n", "  C\n", "  H\n", "  CA\n", "  H\n").Replace(pdb), Want{Kind: ProteinStructure}, "has only hydrogen atoms"},
		{"hydrogens without elements", pdb[:70] + "\n" + strings.Replace(pdb[:70], " N  ", "1HG1", 1) + "\n", Want{Kind: ProteinStructure, MaxAtoms: 1}, "has 2 atoms; the maximum is 1"},
		{"on top of each other", atoms + strings.ReplaceAll(pdb, " A ", " B "), Want{Kind: Structure}, "has 4 atoms within 0.5 Å of another one"},
		{"near each other", atoms + strings.NewReplacer(" A ", " B ", "6.071", "6.281", "6.134", "5.834").Replace(pdb), Want{Kind: Structure}, "has 4 atoms within 0.5 Å of another one"},
		{"not so near", atoms + strings.NewReplacer(" A ", " B ", "6.071", "8.971", "6.134", "8.834").Replace(pdb), Want{Kind: Structure}, "has 2 atoms within"},
		{"at several places", atoms + strings.NewReplacer(" ALA A ", "BALA A ", " MSE A ", "BMSE A ").Replace(pdb), Want{Kind: Structure}, ""},
		{"mmCIF, one point", strings.NewReplacer("2.0 2.0", "1.0 2.0", "1.0 3.0", "1.0 2.0").Replace(cif), Want{Kind: ProteinStructure}, "has 2 atoms within 0.5 Å of another one"},
		{"mmCIF", cif, Want{Kind: ProteinStructure, MinResidues: 2, MaxResidues: 2, MaxAtoms: 3}, ""},
		{"mmCIF without its end", strings.TrimSuffix(cif, "#\n"), Want{Kind: ProteinStructure}, ""},
		{"mmCIF, broken row", strings.Replace(cif, "ATOM 3 CA", "ATOM CA", 1), Want{Kind: ProteinStructure}, `has no valid residue number in line 16: "1.0"; rows of its table of atoms have 10 values, and line 16 is the first that does not complete one`},
		{"mmCIF, bad coordinate", strings.Replace(cif, "ATOM 3 CA GLY A 2 1.0", "ATOM 3 CA GLY A 2 ?", 1), Want{Kind: ProteinStructure}, `has no valid coordinate Cartn_x in line 16: ""`},
		{"mmCIF without atoms", cif[:strings.Index(cif, "ATOM")], Want{Kind: ProteinStructure}, "has no atoms"},

		{"residue numbers with letters", strings.ReplaceAll(pdb, "A   1 ", "AA000 "), Want{Kind: ProteinStructure, MinResidues: 2, MaxResidues: 2}, ""},
		{"mmCIF without residue numbers", strings.Replace(cif, "GLY A 2", "GLY A .", 1), Want{Kind: ProteinStructure}, "has no valid residue number in line 16"},
		{"mmCIF, second model", strings.TrimSuffix(cif, "#\n") + "ATOM broken\n", Want{Kind: ProteinStructure, MaxAtoms: 3}, "is truncated in line 18: its last atom has 2 of 10 values"},
		{"mmCIF, second table", cif + "data_Y\n" + cif, Want{Kind: ProteinStructure}, "has a second table of atoms in line 23"},

		{"FASTA", ">a b\nMKV\nlld\n\n>c\nMKX*\n", Want{Kind: ProteinSequences, MaxRecords: 2, MaxResidues: 6}, ""},
		{"no FASTA", "MKV\n", Want{Kind: ProteinSequences}, "is not a FASTA file: line 1 comes before the first record"},
		{"no record", "\n\n", Want{Kind: ProteinSequences}, "has no records"},
		{"wrong letter", ">a\nMKV\nLL1D\n", Want{Kind: ProteinSequences}, `record 1 (a), line 3, letter 3: "1" is not a valid amino acid`},
		{"gap", ">a\nMK-V\n", Want{Kind: ProteinSequences}, `record 1 (a), line 2: "-" is an alignment gap`},
		{"no sequence", ">a\n>b\nM\n", Want{Kind: ProteinSequences}, "record 1 (a) has no sequence"},
		{"too long", ">a\nMKVL\n", Want{Kind: ProteinSequences, MaxResidues: 3}, "record 1 (a) has 4 residues; the maximum is 3"},
		{"too short", ">a\nMK\n", Want{Kind: ProteinSequences, MinResidues: 3}, "record 1 (a) has 2 residues; it needs at least 3"},
		{"too many records", ">a\nM\n>b\nM\n", Want{Kind: ProteinSequences, MaxRecords: 1}, "has 2 records; the maximum is 1"},
		{"several mistakes", ">a\n1\n2\n3\n4\n5\n6\n", Want{Kind: ProteinSequences}, `record 1 (a), line 2, letter 1: "1" is not a valid amino acid|record 1 (a), line 3, letter 1: "2" is not a valid amino acid|`},
		{"nucleotides", ">a\nACGTU\n", Want{Kind: NucleotideSequences}, ""},
		{"protein for nucleotides", ">a\nMEL\n", Want{Kind: NucleotideSequences}, `letter 2: "E" is not a valid nucleotide`},
		{"alignment", ">a\nMK-V\n>b\nMKLV\n", Want{Kind: Alignment}, ""},
		{"alignment of one", ">a\nMK-V\n", Want{Kind: Alignment}, "has 1 record; it needs at least 2"},
		{"no alignment", ">a\nMK-V\n>b\nMKV\n", Want{Kind: Alignment}, "record 2 (b) has 3 columns but the first record 4"},
		{"alignment of gaps", ">a\n---\n>b\nMKL\n", Want{Kind: Alignment}, "record 1 (a) has only gaps"},
		{"sequences of proteins", ">a\nMEL\n>b\n" + dna + "\n", Want{Kind: Sequences}, "record 2 (b) looks like nucleotides, but record 1 like proteins"},
		{"alignment of both kinds", ">a\n" + dna + "\n>b\n" + strings.Repeat("E", len(dna)) + "\n", Want{Kind: Alignment}, "record 2 (b) looks like proteins, but record 1 like nucleotides"},
		{"sequences of nucleotides", ">a\n" + dna + "\n>b\nACGU\n", Want{Kind: Sequences}, ""},
		{"sequences with a gap", ">a\nMK-V\n", Want{Kind: Sequences}, "is an alignment gap"},
		{"unknown residues", ">a\nXXxX*\n", Want{Kind: ProteinSequences}, "record 1 (a) has only unknown residues"},
		{"unknown nucleotides", ">a\nNNNN\n", Want{Kind: NucleotideSequences}, "record 1 (a) has only unknown residues"},
		{"asparagines", ">a\nNNNN\n", Want{Kind: ProteinSequences}, ""},
		{"gaps of another program", ">a\nM~\n>b\nMK\n", Want{Kind: Alignment}, `"~" is not a valid residue or gap`},
		{"sequences with a stop", ">a\nMKV*\n", Want{Kind: Sequences}, "record 1 (a), line 2, letter 4: a stop (*) can't be aligned"},
		{"nucleotides for proteins", ">a\n" + dna + "\n", Want{Kind: ProteinSequences}, "record 1 (a) looks like DNA or RNA"},
		{"nucleotides for an alignment of proteins", ">a\nE" + dna + "\n>b\n-" + dna + "\n", Want{Kind: ProteinAlignment}, "record 2 (b) looks like DNA or RNA"},
		{"nucleotides with codes for proteins", ">a\n" + strings.Repeat(dna, 5) + "RYK\n", Want{Kind: ProteinSequences}, "record 1 (a) looks like DNA or RNA"},
		{"a short protein of such letters", ">a\nACGTRYKACGTRYKACGTRYKACGT\n", Want{Kind: ProteinSequences}, ""},
		{"protein of few letters", ">a\n" + strings.Repeat("GA", 30) + "\n>b\nACGT\n", Want{Kind: ProteinSequences}, ""},
		{"names", ">a 1\nM\n>b 1\nM\n", Want{Kind: ProteinSequences, UniqueNames: true}, ""},
		{"equal names", ">a 1\nM\n>b\nM\n>a\t2\nM\n", Want{Kind: ProteinSequences, UniqueNames: true}, "record 3 (a) has the same name as record 1"},
		{"equal names that do no harm", ">a\nM\n>a\nM\n", Want{Kind: ProteinSequences}, ""},
		{"no name", "> \nM\n", Want{Kind: ProteinSequences, UniqueNames: true}, "record 1 has no name"},
		{"blank within a line", ">a b\nMK V\n", Want{Kind: ProteinSequences}, "record 1 (a), line 2, letter 3: a space"},
		{"blanks at the end of lines", ">a b \nMKV \nMKL\t\r\n", Want{Kind: ProteinSequences, MaxResidues: 6}, ""},
		{"byte order mark", "\uFEFF>a\nM\n", Want{Kind: ProteinSequences}, "begins with a byte order mark"},
		{"byte order mark, read by the program", "\uFEFF>a\nM\n", Want{Kind: ProteinSequences, AcceptsTextVariants: true}, ""},
		{"byte order mark, PDB", "\uFEFF" + pdb, Want{Kind: ProteinStructure}, "begins with a byte order mark"},
		{"byte order mark, PDB, read by the program", "\uFEFF" + pdb, Want{Kind: ProteinStructure, MinResidues: 2, MaxResidues: 2, AcceptsTextVariants: true}, ""},
		{"byte order mark, mmCIF, read by the program", "\uFEFF" + cif, Want{Kind: ProteinStructure, MinResidues: 2, MaxResidues: 2, AcceptsTextVariants: true}, ""},
		{"byte order mark, SDF, read by the program", "\uFEFF" + sdf, Want{Kind: SmallMolecules, AcceptsTextVariants: true}, ""},
		{"lines of old Macs", strings.ReplaceAll(pdb, "\n", "\r"), Want{Kind: ProteinStructure}, "has lines that end with a carriage return (CR) only"},
		{"lines of old Macs, PDB, read by the program", strings.ReplaceAll(pdb, "\n", "\r"), Want{Kind: ProteinStructure, MinResidues: 2, MaxResidues: 2, AcceptsTextVariants: true}, ""},
		{"lines of old Macs, FASTA, read by the program", ">a\rMKV\r\n>b\rMK\r", Want{Kind: ProteinSequences, MinRecords: 2, MaxResidues: 3, AcceptsTextVariants: true}, ""},
		{"UTF-16", "\xff\xfe>\x00a\x00\n\x00M\x00", Want{Kind: ProteinSequences}, "begins with a byte order mark"},
		{"UTF-16, read by the program", "\xff\xfe>\x00a\x00\n\x00M\x00", Want{Kind: ProteinSequences, AcceptsTextVariants: true}, ""},
		{"header of Windows", ">prot\xe9ine\nMKV\n", Want{Kind: ProteinSequences}, "is not plain text: line 1 has invalid characters"},
		{"header of Windows, read by the program", ">prot\xe9ine\nMKV\n", Want{Kind: ProteinSequences, AcceptsTextVariants: true}, ""},
		{"letter of Windows", ">a\nMK\xe9\n", Want{Kind: ProteinSequences, AcceptsTextVariants: true}, "is not plain text: line 2 has invalid characters"},
		{"one sequence without a header", "MKV laa\nMKV*\n", Want{Kind: ProteinSequences, AcceptsTextVariants: true}, "has 2 lines but no header, so these could be several sequences"},
		{"one sequence without a header, wrapped", strings.Repeat("MKVL", 15) + "\nMKV*\n", Want{Kind: ProteinSequences, AcceptsTextVariants: true, MaxRecords: 1, MinResidues: 63}, ""},
		{"text before the first header", "MKV\n>a\nMKV\n", Want{Kind: ProteinSequences, AcceptsTextVariants: true}, "has text before the first header, \"MKV\"; add a header"},
		{"prose for a sequence", "Notes of today\n", Want{Kind: ProteinSequences, AcceptsTextVariants: true}, "is not a FASTA file: line 1 comes before the first record"},
		{"comment and blanks, read by the program", "; note\n> a\n M K\tV\n;x\n", Want{Kind: ProteinSequences, AcceptsTextVariants: true, MaxResidues: 3}, ""},
		{"letters that others look like", ">a\nMKſ\n", Want{Kind: ProteinSequences, AcceptsTextVariants: true}, `letter 3: "ſ" is not a valid amino acid`},
		{"chains of a complex", ">a\nMKV:MKV\n", Want{Kind: ProteinSequences}, "record 1 (a), line 2, letter 4: a colon separates the chains of a complex"},
		{"A3M for an alignment", ">a\nMKVL\n>b\nMKaaV-\n", Want{Kind: ProteinAlignment}, "record 2 (b) has 6 columns and the first record 4, but the same number without lower-case letters: this is an A3M or A2M file"},
		{"A3M for sequences", ">a\nMKVL\n>b\nMKaaV-\n", Want{Kind: ProteinSequences, AcceptsTextVariants: true}, `record 2 (b), line 4: "-" is an alignment gap`},
		{"comment of old days", ">a\n;note\nM\n", Want{Kind: ProteinSequences}, `";" is not a valid amino acid`},

		{"SDF", sdf + sdf, Want{Kind: SmallMolecules, MinRecords: 2, MaxRecords: 2, MaxAtoms: 3}, ""},
		{"MOL", strings.TrimSuffix(sdf, "$$$$\n"), Want{Kind: SmallMolecules}, ""},
		{"large molecule", sdf, Want{Kind: SmallMolecules, MaxAtoms: 2}, "has a molecule of 3 atoms, at line 4; the maximum is 2"},
		{"no atoms", strings.Replace(sdf, "  3  2  0", "  0  0  0", 1), Want{Kind: SmallMolecules}, "has a molecule without atoms, at line 4"},
		{"truncated SDF", sdf[:strings.Index(sdf, "    3.0000")], Want{Kind: SmallMolecules}, "ends in line 6, but the last molecule has"},
		{"SDF that ends early", strings.Replace(sdf, "    3.0000    0.0000    0.0000 O   0  0\n  1  2  1  0\n  2  3  1  0\nM  END\n", "", 1), Want{Kind: SmallMolecules}, "has a truncated molecule in line 7"},
		{"V3000", v3000 + sdf, Want{Kind: SmallMolecules, MinRecords: 2, MaxAtoms: 3}, ""},
		{"V3000, lines that go on", strings.Replace(v3000, "3 O 0 1 0 0", "3 O 0 1 -\nM  V30 0 0 CHG=-1", 1), Want{Kind: SmallMolecules}, ""},
		{"V3000, a property in the next line", strings.Replace(v3000, "3 O 0 1 0 0", "3 O 0 1 0 0 -\nM  V30 CHG=-1", 1), Want{Kind: SmallMolecules}, ""},
		{"V3000, large molecule", v3000, Want{Kind: SmallMolecules, MaxAtoms: 2}, "has a molecule of 3 atoms, at line 6; the maximum is 2"},
		{"V3000, no atoms", strings.Replace(v3000, "COUNTS 3", "COUNTS 0", 1), Want{Kind: SmallMolecules}, "has a molecule without atoms, at line 6"},
		{"V3000, bad count", strings.Replace(v3000, "COUNTS 3", "COUNTS x", 1), Want{Kind: SmallMolecules}, `has no atom count in line 6: "x"`},
		{"V3000, atoms missing", strings.Replace(v3000, "M  V30 3 O 0 1 0 0\n", "", 1), Want{Kind: SmallMolecules}, `has no atom with coordinates in line 15: "M  END"`},
		{"V3000, bad atom", strings.Replace(v3000, "2 H 0 0 1", "2 H 0 x 1", 1), Want{Kind: SmallMolecules}, `has no atom with coordinates in line 9: "2 H 0 x 1 0"`},
		{"V3000, truncated", v3000[:strings.Index(v3000, "M  V30 COUNTS")], Want{Kind: SmallMolecules}, "ends in line 5, but the last molecule has"},
		{"SDF in UTF-16 of Windows, read by the program", "\xff\xfe" + strings.Join(strings.Split(strings.ReplaceAll(sdf, "\n", "\r\n"), ""), "\x00") + "\x00", Want{Kind: SmallMolecules, AcceptsTextVariants: true, MaxRecords: 1}, ""},
		{"SDF, name in Windows-1252", strings.Replace(sdf, "ethanol", "\xe9thanol", 1), Want{Kind: SmallMolecules}, "is not plain text: line 1 has invalid characters"},
		{"SDF, name in Windows-1252, read by the program", strings.Replace(sdf, "ethanol", "\xe9thanol", 1), Want{Kind: SmallMolecules, AcceptsTextVariants: true}, ""},
		{"SDF of old Macs, read by the program", strings.ReplaceAll(sdf, "\n", "\r"), Want{Kind: SmallMolecules, AcceptsTextVariants: true, MinRecords: 1}, ""},
		{"MOL2, bad atom", "@<TRIPOS>MOLECULE\nx\n 1 0\n\n@<TRIPOS>ATOM\n1 C1 0.0 x 0.0 C.3 1 A\n", Want{Kind: SmallMolecules}, "has no atom with coordinates in line 6"},
		{"table with semicolons", "sep=;\nname;smiles\na;CCO\nb;C\n", Want{Kind: SmallMolecules, MinRecords: 2, MaxRecords: 2}, ""},
		{"bad atom", strings.Replace(sdf, "    2.0000", "    xxxxxx", 1), Want{Kind: SmallMolecules}, "has no atom with coordinates in line 6"},
		{"MOL2", "@<TRIPOS>MOLECULE\nx\n 1 0\n\n@<TRIPOS>ATOM\n", Want{Kind: SmallMolecules}, ""},
		{"SMILES", "CC(=O)Oc1ccccc1C(=O)O aspirin\n[Na+].[Cl-]\nC%10CC%10Br\n", Want{Kind: SmallMolecules, MaxRecords: 3}, ""},
		{"one SMILES", "CCO", Want{Kind: SmallMolecules}, ""},
		{"prose", "This is no molecule.\n", Want{Kind: SmallMolecules}, `is neither an SDF, MOL or MOL2 file nor a list of SMILES: line 1 has "This", in which letter 1 is not an atom`},
		{"open bracket", "C[Na", Want{Kind: SmallMolecules}, "which has an empty or unclosed bracket"},
		{"parentheses", "C(C", Want{Kind: SmallMolecules}, "which has an unclosed parenthesis"},
		{"too many parentheses", "C)C", Want{Kind: SmallMolecules}, "which has an unmatched closing parenthesis"},
		{"no molecules", "\n\n\n\n\n", Want{Kind: SmallMolecules}, "has 0 molecules; it needs at least 1"},
		{"molecules left to the program", "CCO\naspirin\nC(C\n\n", Want{Kind: SmallMolecules, Tolerant: true, MaxRecords: 1}, ""},
		{"truncated SDF left to the program", sdf + sdf[:strings.Index(sdf, "    3.0000")], Want{Kind: SmallMolecules, Tolerant: true}, ""},

		{"table", "smiles,name\nCCO,a\nC,b\n", Want{Kind: Table, Columns: []string{"smiles"}, MaxRecords: 2}, ""},
		{"no column", "smile,name\nCCO,a\n", Want{Kind: Table, Columns: []string{"smiles", "id"}}, `has no column "smiles"; it has smile, name|has no column "id"`},
		{"no rows", "smiles,name\n", Want{Kind: Table}, "has 0 rows; it needs at least 1"},
		{"too many rows", "a,b\n1,2\n3,4\n", Want{Kind: Table, MaxRecords: 1}, "has 2 rows; the maximum is 1"},
		{"UTF-16 table", "\xff\xfea\x00\n\x001\x00\n\x00", Want{Kind: Table}, "is UTF-16 (Excel's \"Unicode Text\")"},
		{"empty table", "", Want{Kind: Table}, "is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file.csv")
			must.OK(t, os.WriteFile(path, []byte(tt.text), 0o600))
			found, err := CheckFile(t.Context(), path, tt.want)
			must.OK(t, err)
			got := strings.Join(found.Mistakes, "|")
			if (got == "") != (tt.mistakes == "") || !strings.HasPrefix(got, tt.mistakes) && !strings.Contains(got, tt.mistakes) {
				t.Errorf("mistakes %q; want %q", got, tt.mistakes)
			}
			if len(found.Mistakes) > maxMistakes {
				t.Errorf("%d mistakes", len(found.Mistakes))
			}
		})
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.fasta")
	must.OK(t, os.WriteFile(path, []byte(">a\n"+strings.Repeat("MKV\n", 5000)), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found, err := CheckFile(ctx, path, Want{Kind: ProteinSequences}); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := CheckFile(t.Context(), path+"x", Want{Kind: ProteinSequences}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
}

// A check terminates for any input, and engines can read every structure that passes.
func FuzzContent(f *testing.F) {
	for i, text := range []string{pdb, cif, sdf, ">a\nMKV\n", "CCO\n", "a,b\n1,2\n", packed(pdb), v3000, "@<TRIPOS>MOLECULE\nx\n 1 0\n\n@<TRIPOS>ATOM\n1 C1 0.0 0.0 0.0 C.3 1 A\n"} {
		f.Add(text, uint8(i), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, text string, kind uint8, anyText bool) {
		path := filepath.Join(t.TempDir(), "file")
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		want := Want{Kind: Kinds[int(kind)%len(Kinds)], MinResidues: 1, Packed: anyText, AcceptsTextVariants: anyText}
		found, err := CheckFile(t.Context(), path, want)
		must.OK(t, err)
		for _, m := range found.Mistakes {
			if m == "" || len(m) > 2000 {
				t.Errorf("%q", m)
			}
		}
		if !want.own() || found.Mistakes != nil {
			return
		}
		if m, err := structure.Read(strings.NewReader(text)); err != nil || m.Summary() != found.Summary {
			t.Errorf("%q, but %v, %v", found.Summary, m, err)
		}
	})
}

func TestFactsAreCounted(t *testing.T) {
	atom := func(n int, name, residue, chain string, number int) string {
		return fmt.Sprintf("ATOM  %5d  %-3s %s %s%4d    %8.3f%8.3f%8.3f  1.00  0.00           %s\n", n, name, residue, chain, number, float64(n), 2.0, 3.0, name[:1])
	}
	for _, tt := range []struct {
		kind, text string
		want       Facts
	}{
		{
			ProteinStructure,
			atom(1, "N", "ALA", "A", 1) + atom(2, "CA", "ALA", "A", 1) + atom(3, "C", "ALA", "A", 1) + atom(4, "H", "ALA", "A", 1) +
				atom(5, "N", "GLY", "A", 2) + atom(6, "CB", "SER", "B", 1) + atom(7, "O", "HOH", "B", 9) + "END\n",
			Facts{"residues": 3, "chains": 2, "atoms": 7, "heavy": 5, "backbone": 1, "sidechains": 2},
		},
		{ProteinSequences, ">a\nMEEPQ\nSD\n>b\nMKV\n", Facts{"records": 2, "residues": 10, "longest": 7}},
		{Alignment, ">a\nM-EP\n>b\nMKVP\n", Facts{"records": 2, "residues": 7, "longest": 4}},
		{SmallMolecules, "CCO ethanol\nC methane\n", Facts{"records": 2, "largest": 3}},
		{SmallMolecules, "[Na+].[O-]C(=O)c1ccccc1Cl\n[2H]C([H])[nH]\n[13CH3][C@@H](Br)[Si]\n", Facts{"records": 3, "largest": 10}},
		{SmallMolecules, "name,SMILES,mass\n\"a, b\",CCO,46\nc,\"C[NH3+]\",32\n", Facts{"records": 2, "largest": 3}},
		{SmallMolecules, "smiles\tname\nCCOC\tx\n\ty\nC\n", Facts{"records": 2, "largest": 4}},
		{SmallMolecules, strings.Replace(sdf, " O ", " H ", 1) + sdf, Facts{"records": 2, "largest": 3}},
		{SmallMolecules, v3000, Facts{"records": 1, "largest": 2}},
		{SmallMolecules, "@<TRIPOS>MOLECULE\nx\n 3 0\n\n@<TRIPOS>ATOM\n1 C1 0 0 0 C.3\n2 H1 0 0 1 H\n3 N1 0 1 0 N.pl3\n@<TRIPOS>BOND\n1 1 2 1 x y\n", Facts{"records": 1, "largest": 2}},
		{Table, "name,value\na,1\nb,2\nc,3\n", Facts{"records": 3}},
	} {
		path := filepath.Join(t.TempDir(), "file")
		must.OK(t, os.WriteFile(path, []byte(tt.text), 0o600))
		got, err := CheckFile(t.Context(), path, Want{Kind: tt.kind})
		must.OK(t, err)
		must.Equal(t, tt.kind+": facts", got.Facts, tt.want)
		must.Equal(t, tt.kind+": mistakes", len(got.Mistakes), 0)
		if structure := tt.kind == ProteinStructure; structure != (got.Summary == "2 chains, 2 + 1 residues, 1 water") {
			t.Errorf("%s: %q", tt.kind, got.Summary)
		}
		for fact := range got.Facts {
			if !slices.Contains(FactsOf(tt.kind), fact) {
				t.Errorf("%s has no fact %s", tt.kind, fact)
			}
		}
	}
}
