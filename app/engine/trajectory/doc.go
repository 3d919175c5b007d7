// Package trajectory writes structures and trajectories in formats that other programs
// read: PDB, with one bead per residue, and DCD.
package trajectory
