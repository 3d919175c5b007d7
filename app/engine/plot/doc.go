// Package plot draws the results of simulations: the radius of gyration over the run, maps of
// pairs of residues, and concentrations along a box.
package plot
