// Package chains reads what the engines that simulate proteins have in common: sequences in
// settings and FASTA files, the conditions around them, and what makes both doubtful.
package chains
