//go:build !race

package cli

import "os"

// longChain is the length, in tens of residues, of a chain whose simulation takes at
// least a second.
const longChain = 100

// exit ends a process of the test binary.
func exit(code int) { os.Exit(code) }
