// Package input reads engine settings and protein sequences as written by users, from
// JSON settings and from FASTA text in various encodings. Its error messages are worded
// for users and say how to correct the input; its warnings say why results might be
// unreliable.
package input
