// Package structsum is the engine of structure-summary: what a structure holds and what it
// is missing. It needs no other program.
//
// Lengths are in ångström. Of atoms at several places the one with the highest occupancy
// counts, of several models the first. Hydrogens count nowhere.
package structsum
