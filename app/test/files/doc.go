// Package files tests that structures, those in the repository and made ones, are read alike
// however programs write them: their own counts, and those of gemmi, which is an independent
// reader.
//
// Where gemmi counts otherwise, molrun's rule is:
//
//   - chains of one name, or of none, are told apart by TER records, or by residues that are
//     there again; gemmi joins them
//   - waters that share a number, as beyond 9999, are all counted; gemmi joins them
//   - models may be separated by END alone, where gemmi stops
//   - without TER records, or without the types of entities in mmCIF, what is bound to a polymer
//     is part of it; gemmi takes what is like its residues
//   - an mmCIF file may lack occupancies, B factors, elements and the authors' names of chains,
//     without which gemmi reads no atoms
//   - a carriage return alone ends a line, a byte order mark is skipped, residue numbers may
//     be hexadecimal, and what gzip has packed is known by its first bytes, not by the name
package files
