// Package md computes the molecular dynamics of disordered proteins with the CALVADOS 2
// model: one bead per residue, implicit solvent, Langevin dynamics (Tesei and
// Lindorff-Larsen, Open Research Europe 2022, 2:94). It also averages observables. It
// does not access files.
//
// A [Model] holds the parameters of a chain, [Dynamics] integrates it, and [Series],
// [PairSums] and [Scaling] evaluate the trajectory. A [Mixture] is many chains in a
// periodic box, which [Motion] integrates with a [Team] of workers; its pair forces are
// computed in single precision. Equal seeds give bitwise equal results on machines of one
// architecture, for any number of workers.
//
// Units throughout: nm, ps, g/mol, kJ/mol, K, elementary charge, mol/L. They are
// coherent: 1 g/mol nm²/ps² = 1 kJ/mol.
package md
