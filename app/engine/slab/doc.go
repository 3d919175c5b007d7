// Package slab evaluates a dense phase that coexists with a dilute one in a box that is long
// along z: where the interfaces are, and the concentrations on both sides, with their errors.
//
// Lengths are in nm. The dense phase is a slab across the box. It wanders, so each frame is
// moved along z to where it fits the mean of the frames before it best.
package slab
