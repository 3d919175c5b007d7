// Package store keeps the files of an engine: results, each replaced as a whole, and
// checkpoints, from which a run goes on after it was killed.
package store
