// Package store writes the results of engines: files, which it replaces atomically, and
// formatted numbers.
package store
