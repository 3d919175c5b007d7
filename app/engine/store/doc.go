// Package store writes the result files of engines, replacing them atomically, and
// formats numbers.
package store
