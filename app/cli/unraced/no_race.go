//go:build !race

package unraced

import "os"

// Program is the test binary.
func Program() string { return os.Args[0] }

// Build makes nothing: there is no detector.
func Build() (remove func() error, err error) { return func() error { return nil }, nil }
