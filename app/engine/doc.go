// Package engine is the parent of the built-in engines. cgidp simulates one disordered
// chain, condensate many in a box, and binodal derives phase diagrams from the results of
// cg-condensate jobs; seqprop and structsum compute properties of sequences and
// structures.
//
// They share md (forces, integrator, averages; no file access), input (settings and
// sequences), run (replicas and checkpoints), trajectory, plot and store. Start reading
// at the Run function of an engine. An engine imports only app/base and the packages of
// this tree; it does not know that it runs as a job.
package engine
