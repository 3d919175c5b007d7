//go:build !race

package cli

import "os"

// longChain makes a simulation of a second or more, in tens of residues.
const longChain = 100

// exit ends a process of the test binary.
func exit(code int) { os.Exit(code) }
