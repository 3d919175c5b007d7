// Command molrun runs protein and molecular-simulation jobs for a lab.
package main

import (
	"os"

	"molrun/app/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
