// Package trajectory writes structures and trajectories of the engines in the formats
// that other programs read: PDB, with one bead for each residue, and DCD.
package trajectory
