package run

import (
	"fmt"
	"strings"

	"molrun/app/engine/md"
	"molrun/app/engine/store"
	"molrun/app/engine/trajectory"
)

// About is the metadata of structures and trajectories.
type About struct {
	Origin store.Origin
	Box    md.Vec // edges in nm; zero without a box
}

// heading returns the start of a PDB file: remarks on its origin, and the box.
func (a About) heading() []byte {
	var b []byte
	for _, line := range a.Origin.Lines() {
		b = fmt.Appendf(b, "%-80s\n", "REMARK   6 "+line)
	}
	if a.Box != (md.Vec{}) {
		x, y, z := a.edges()
		b = fmt.Appendf(b, "CRYST1%9.3f%9.3f%9.3f%7.2f%7.2f%7.2f P 1           1          \n", x, y, z, 90., 90., 90.)
	}
	return b
}

// edges returns the box edges in Å.
func (a About) edges() (x, y, z float64) {
	return a.Box.X * trajectory.Angstrom, a.Box.Y * trajectory.Angstrom, a.Box.Z * trajectory.Angstrom
}

// mmCIF returns one structure with positions in Å and the residues of each chain. Unlike
// PDB, mmCIF has enough unique names for any number of chains. Identical chains are one
// entity.
func (a About) mmCIF(chains []string, x []md.Vec) []byte {
	var b []byte
	add := func(format string, args ...any) { b = fmt.Appendf(b, format, args...) }
	entity, sequences := map[string]int{}, []string{}
	for _, residues := range chains {
		if entity[residues] == 0 {
			sequences = append(sequences, residues)
			entity[residues] = len(sequences)
		}
	}
	add("data_molrun\n_entry.id molrun\n_software.pdbx_ordinal 1\n_software.name molrun\n_software.version '%s'\n_software.classification 'model building'\n",
		a.Origin.Version())
	add("_struct.entry_id molrun\n_struct.title\n;%s\n;\n", strings.Join(a.Origin.Lines(), "\n"))
	if a.Box != (md.Vec{}) {
		x, y, z := a.edges()
		add("_cell.entry_id molrun\n_cell.length_a %.3f\n_cell.length_b %.3f\n_cell.length_c %.3f\n", x, y, z)
		add("_cell.angle_alpha 90\n_cell.angle_beta 90\n_cell.angle_gamma 90\n_symmetry.entry_id molrun\n_symmetry.space_group_name_H-M 'P 1'\n")
	}
	add("loop_\n_entity.id\n_entity.type\n")
	for k := range sequences {
		add("%d polymer\n", k+1)
	}
	add("loop_\n_entity_poly.entity_id\n_entity_poly.type\n_entity_poly.pdbx_seq_one_letter_code\n")
	for k, residues := range sequences {
		add("%d 'polypeptide(L)'\n;%s\n;\n", k+1, residues)
	}
	add("loop_\n_entity_poly_seq.entity_id\n_entity_poly_seq.num\n_entity_poly_seq.mon_id\n")
	for k, residues := range sequences {
		for i := range residues {
			add("%d %d %s\n", k+1, i+1, md.Code(residues[i]))
		}
	}
	add("loop_\n_struct_asym.id\n_struct_asym.entity_id\n")
	for k, residues := range chains {
		add("%s %d\n", trajectory.ChainName(k), entity[residues])
	}
	add("loop_\n")
	for _, name := range []string{
		"group_PDB", "id", "type_symbol", "label_atom_id", "label_alt_id", "label_comp_id", "label_asym_id", "label_entity_id", "label_seq_id",
		"pdbx_PDB_ins_code", "Cartn_x", "Cartn_y", "Cartn_z", "occupancy", "B_iso_or_equiv", "auth_seq_id", "auth_comp_id", "auth_asym_id",
		"auth_atom_id", "pdbx_PDB_model_num",
	} {
		add("_atom_site.%s\n", name)
	}
	bead := 0
	for k, residues := range chains {
		name := trajectory.ChainName(k)
		for i := range residues {
			at, code := x[bead], md.Code(residues[i])
			bead++
			add("ATOM %d C CA . %s %s %d %d ? %.3f %.3f %.3f 1.00 0.00 %d %s %s CA 1\n",
				bead, code, name, entity[residues], i+1, at.X, at.Y, at.Z, i+1, code, name)
		}
	}
	return b
}
