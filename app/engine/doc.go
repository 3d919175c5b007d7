// Package engine is the room of the built-in engines. cgidp simulates one disordered
// chain, condensate many in a box, binodal derives phase diagrams from the results of
// cg-condensate jobs; seqprop and structsum compute properties of sequences and structures.
//
// They share md (forces, integrator, averages: no files), input (settings and chains),
// sequence (reading of sequences), trajectory, plot and store. Begin with the Run function of an engine. An engine imports app/base and the packages of this room
// only: it does not know that it runs as a job.
package engine
