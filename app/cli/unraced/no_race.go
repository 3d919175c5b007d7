//go:build !race

package unraced

// Build makes nothing: there is no detector.
func Build() (remove func() error, err error) { return func() error { return nil }, nil }
