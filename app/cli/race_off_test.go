//go:build !race

package cli

import "os"

// exit ends a process of the test binary.
func exit(code int) { os.Exit(code) }
