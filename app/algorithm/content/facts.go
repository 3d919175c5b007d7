package content

import "slices"

// Facts is the metadata of a file: counts by name.
type Facts map[string]float64

// FactsOf returns the metadata names for a kind of content.
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
