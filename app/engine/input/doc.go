// Package input reads the settings of an engine and protein sequences as people write them,
// from settings and FASTA text in the encodings of several systems. It says in words for the
// user what is wrong with all that, how to correct it, and what makes results doubtful.
package input
