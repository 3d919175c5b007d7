//go:build !linux

package blobs

import "os"

// preallocate reserves nothing here.
func preallocate(*os.File, int64) (reserved bool, err error) { return false, nil }
