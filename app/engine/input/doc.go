// Package input reads the settings of an engine and collects all that is wrong with them
// in words for the user; it reads chains from settings and FASTA files, with the conditions
// around them and what makes both doubtful.
package input
