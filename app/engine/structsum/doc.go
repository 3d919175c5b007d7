// Package structsum is the engine of structure-summary: it reports the contents of a
// structure and what is missing from it. It depends on no other program.
//
// Lengths are in ångström. For atoms with alternate locations it uses the one with the
// highest occupancy, and of several models the first. Hydrogens are ignored.
package structsum
