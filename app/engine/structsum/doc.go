// Package structsum is the engine of structure-summary: it reports the contents of a
// structure and what is missing from it. It depends on no other program.
//
// Lengths are in ångström. Of alternate locations of an atom, the one with the highest
// occupancy is used, and of several models the first. Hydrogens are ignored.
package structsum
