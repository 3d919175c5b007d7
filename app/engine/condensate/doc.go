// Package condensate is the engine of cg-condensate: it simulates many chains of
// disordered proteins in a periodic box with the CALVADOS 2 model (Tesei and
// Lindorff-Larsen, Open Research Europe 2022, 2:94), to determine whether they condense
// and at which concentrations. It depends on no other program.
//
// Parse checks settings and fills in defaults; Run simulates and writes the results
// folder. The physics is in package md. Density profiles along z, the positions of the
// interfaces, and the concentrations of both phases with their errors are in profile.go,
// phases.go and interface.go. Lengths are in nm. The dense phase is a slab across the
// box; because it diffuses, each frame is shifted along z to the best match with the mean
// of the preceding frames. web/docs/cg-condensate.md explains the results and the limits
// of the model.
package condensate

// Names used in the results.
const (
	engineName    = "cg-condensate"
	engineVersion = "1"
	modelName     = "CALVADOS 2"
	modelDOI      = "10.12688/openreseurope.14967.2"
	protocolDOI   = "10.1073/pnas.2111696118"

	madeBy = engineName + " " + engineVersion + ", " + modelName + ", one bead per residue"
)
