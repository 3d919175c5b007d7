// Package binodal is the engine of cg-binodal: it takes the results of jobs of cg-condensate that
// differ in temperature or in ionic strength, and makes the phase diagram of them. Over
// temperature, it extrapolates to the critical point.
//
// Parse checks settings, Read reads a result; Run evaluates them and writes a folder of results.
// web/docs/cg-binodal.md explains the results and their limits.
package binodal

// Names in the results.
const (
	engineName    = "cg-binodal"
	engineVersion = "1"
	exponentDOI   = "10.1016/S0370-1573(02)00219-3" // critical exponents of the 3D Ising class
	protocolDOI   = "10.1371/journal.pcbi.1005941"  // the fit, for slabs of disordered proteins
)
