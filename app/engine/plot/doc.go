// Package plot draws simulation results: the radius of gyration over a run, maps of pairs
// of residues, density profiles along a box, and phase diagrams.
package plot
