// Package condensate is the engine of cg-condensate: it simulates many chains of disordered
// proteins in a periodic box with the CALVADOS 2 model (Tesei and Lindorff-Larsen, Open
// Research Europe 2022, 2:94), to see whether they condense and at which concentration. It
// needs no other program.
//
// Parse checks settings and fills in defaults; Run simulates and writes a folder of results.
// The physics is in package md. Profiles along z, where the interfaces are, and the
// concentrations on both sides with their errors are in profile.go, phases.go and
// interface.go: lengths are in nm, the dense phase is a slab across the box, and because it
// wanders each frame is moved along z to where it fits the mean of the frames before it
// best. web/docs/cg-condensate.md explains the results and the limits of the model.
package condensate

// Names in the results.
const (
	engineName    = "cg-condensate"
	engineVersion = "1"
	modelName     = "CALVADOS 2"
	modelDOI      = "10.12688/openreseurope.14967.2"
	protocolDOI   = "10.1073/pnas.2111696118"

	madeBy = engineName + " " + engineVersion + ", " + modelName + ", one bead per residue"
)
