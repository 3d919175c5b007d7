package content

import "slices"

// Facts are what was counted in a file, by name.
type Facts map[string]float64

// FactsOf returns the names of what is counted in files of a kind.
func FactsOf(kind string) []string {
	switch kind {
	case ProteinStructure, Structure:
		return []string{"residues", "chains", "atoms", "heavy", "backbone", "sidechains"}
	case SmallMolecules:
		return []string{"records", "largest"}
	case Table:
		return []string{"records"}
	}
	if slices.Contains(Kinds, kind) {
		return []string{"records", "residues", "longest"}
	}
	return nil
}
