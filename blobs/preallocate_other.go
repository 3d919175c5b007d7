//go:build !linux

package blobs

import "os"

// preallocate reserves nothing on this platform.
func preallocate(*os.File, int64) (reserved bool, err error) { return false, nil }
