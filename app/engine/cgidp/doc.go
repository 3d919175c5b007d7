// Package cgidp simulates disordered proteins with the CALVADOS 2 model: one
// bead per residue, implicit solvent, Langevin dynamics (Tesei and
// Lindorff-Larsen, Open Research Europe 2022, 2:94). It needs no other program.
//
// Parse checks settings and fills in defaults; Run simulates and writes a folder
// of results. README.md says what the numbers mean and where they end.
//
// Units throughout: nm, ps, g/mol, kJ/mol, K, elementary charge, mol/L. They are
// coherent: 1 g/mol nm²/ps² = 1 kJ/mol.
package cgidp

// Names under which results are reported.
const (
	engineName    = "cg-idp"
	engineVersion = "1"
	modelName     = "CALVADOS 2"
	modelDOI      = "10.12688/openreseurope.14967.2"
)
