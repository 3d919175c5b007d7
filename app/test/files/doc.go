// Package files tests that structure files, both those in the repository and generated
// ones, are read correctly however programs write them. It compares the numbers of atoms,
// residues and so on with the known content, and with the counts of gemmi, an independent
// reader.
//
// Where gemmi counts differently, molrun follows these rules:
//
//   - chains with the same name, or without a name, are separated by TER records or by
//     repeated residues; gemmi joins them
//   - waters that share a number, as happens above 9999, are all counted; gemmi joins them
//   - models can be separated by END alone; gemmi stops there
//   - without TER records, or without entity types in mmCIF, everything bonded to a
//     polymer is part of it; gemmi includes residues of the polymer's kind
//   - an mmCIF file can lack occupancies, B factors, elements and author chain names;
//     gemmi then reads no atoms
//   - a lone carriage return ends a line, a byte order mark is skipped, residue numbers
//     can be hexadecimal, and gzip is detected by the first bytes rather than by the
//     file name
package files
