// Package cgidp is the engine of cg-idp: it simulates disordered proteins with the
// CALVADOS 2 model (Tesei and Lindorff-Larsen, Open Research Europe 2022, 2:94). It
// depends on no other program.
//
// Parse checks settings and fills in defaults; Run simulates and writes the results
// folder. The physics is in package md. web/docs/cg-idp.md explains the results and the
// limits of the model.
package cgidp

// Names used in the results.
const (
	engineName    = "cg-idp"
	engineVersion = "1"
	modelName     = "CALVADOS 2"
	modelDOI      = "10.12688/openreseurope.14967.2"

	madeBy = engineName + " " + engineVersion + ", " + modelName + ", one bead per residue"
)
