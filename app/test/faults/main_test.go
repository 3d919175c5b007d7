package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"molrun/app/test/must"
	"molrun/app/test/whole"
)

var (
	program   = flag.String("binary", "", "molrun binary to test; empty builds it from source")
	kills     = flag.Int("kills", 5, "number of times to kill the service under load")
	queries   = flag.Int("queries", 64, "number of queries of the clients of the alignment server")
	positions = flag.Int("positions", 1, "number of calls of each kind to fail, one per run")
	machine   = flag.String("machine", "", "directory with kernel and initrd; empty skips the power cuts")
	cuts      = flag.Int("cuts", 25, "number of power cuts")
	rounds    = flag.Int("rounds", 2, "number of rounds of cluster faults under load")
	only      = flag.String("only", "", "inject only cluster faults with this text in their name")
	given     = flag.Int("given", 1, "number of times that a crashed controller gives the number of a cancelled job away")
	rows      = flag.Int("rows", 60, "number of rows in the batch that the cluster runs")
	arraySize = flag.Int("array-size", 1001, "MaxArraySize of that cluster, and of the one with short rows")
	shortRows = flag.Int("short-rows", 0, "number of rows that are measured on a cluster next to a plain array; 0: none")
	shortTime = flag.Float64("short-seconds", 0, "seconds that the program of a short row sleeps; 0: it does nothing")
	shortPeer = flag.Int("short-peer", 0, "number of tasks of the plain array, and of turns of the loop; 0: as many as rows")
	shortRuns = flag.Int("short-rounds", 3, "number of rounds of that measurement")
	waiting   = flag.Int("waiting", 40, "number of jobs that wait while the program is replaced")
	replaced  = flag.Int("replaced", 7, "number of times that the program is replaced meanwhile")
	attacks   = flag.Int("attacks", 1, "how many times as much attackers try")
	seed      = flag.Uint64("seed", 0, "seed of the random choices; 0 takes the time")
)

// patience is the timeout for every wait. Reaching it means failure.
const patience = must.Patience

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if yes, err := injected(); yes {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	return whole.Main(*program, func(built string) int {
		*program = built
		return m.Run()
	})
}
