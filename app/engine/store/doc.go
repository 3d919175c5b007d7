// Package store writes the results of engines: files, each replaced as a whole, and the numbers
// in them.
package store
