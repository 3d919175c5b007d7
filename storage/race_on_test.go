//go:build race

package storage

// checked reports whether the race detector is on. It checks pointers, and crashes the
// process when bbolt follows the pointers of a damaged page.
const checked = true
