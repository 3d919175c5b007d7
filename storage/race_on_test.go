//go:build race

package storage

// checked is whether the race detector watches pointers, and ends the process where
// bbolt follows those of a damaged page.
const checked = true
