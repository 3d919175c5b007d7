// Package seqprop is the engine of sequence-properties: properties that can be computed
// from a protein sequence alone. It depends on no other program.
//
// The unit and the source of every quantity are documented where it is computed. A
// quantity that is undefined for a sequence, such as kappa without opposite charges, is
// NaN and omitted from the results.
package seqprop
