// Package seqprop is the engine of sequence-properties: what can be computed of a protein from
// its sequence alone. It needs no other program.
//
// Every quantity has its unit and source where it is computed. One that means nothing for a
// sequence, such as kappa of a sequence without opposite charges, is NaN and is left out of
// the results.
package seqprop
