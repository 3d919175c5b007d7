// Package binodal is the engine of cg-binodal: it builds a phase diagram from
// cg-condensate jobs that differ in temperature or in ionic strength. For a temperature
// series, it extrapolates to the critical point.
//
// Parse checks settings, ReadPoint reads the result of a job, and Run evaluates the
// results and writes the output folder. web/docs/cg-binodal.md explains the results and
// their limits.
package binodal

// Names used in the results.
const (
	engineName    = "cg-binodal"
	engineVersion = "1"
	exponentDOI   = "10.1016/S0370-1573(02)00219-3" // critical exponents of the 3D Ising universality class
	protocolDOI   = "10.1371/journal.pcbi.1005941"  // the fit, applied to slabs of disordered proteins
)
