// Package files tests that structures, both those in the repository and generated ones,
// are read alike however programs write them. It compares with the structures' own
// counts, and with those of gemmi, an independent reader.
//
// Where gemmi counts differently, molrun's rule is:
//
//   - chains with the same name, or with none, are separated by TER records or by repeated
//     residues; gemmi joins them
//   - waters that share a number, as above 9999, are all counted; gemmi joins them
//   - models can be separated by END alone, where gemmi stops
//   - without TER records, or without entity types in mmCIF, anything bound to a polymer is
//     part of it; gemmi includes residues of the polymer's kind
//   - an mmCIF file can lack occupancies, B factors, elements and author chain names, without
//     which gemmi reads no atoms
//   - a carriage return alone ends a line, a byte order mark is skipped, residue numbers can
//     be hexadecimal, and gzip is detected by the first bytes, not by the name
package files
