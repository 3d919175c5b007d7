package slurm

import (
	"testing"

	"molrun/app/algorithm/placement"
	"molrun/app/test/must"
)

// Output of sinfo of Slurm 22.05; the last three lines are made up.
const recordedNodes = `main*|16|64000|(null)|7-00:00:00
main*|4|4000|gpu:fake:2|7-00:00:00
big|16|64000|(null)|2:30:00
big|4|4000|gpu:fake:2|2:30:00
forever|4|4000|gpu:fake:2|infinite
mixed|64+|512000+|gpu:a100:4(S:0,1),gpu:2,nic:mlx:8|30:00

nonsense|many|1|(null)|1:00
`

func TestParseNodes(t *testing.T) {
	const mib = 1 << 20
	main := placement.Node{CPUs: 16, MemoryBytes: 64000 * mib, GPUs: 2, Seconds: 7 * 24 * 3600}
	want := map[string]placement.Node{
		"":        main,
		"main":    main,
		"big":     {CPUs: 16, MemoryBytes: 64000 * mib, GPUs: 2, Seconds: 9000},
		"forever": {CPUs: 4, MemoryBytes: 4000 * mib, GPUs: 2},
		"mixed":   {CPUs: 64, MemoryBytes: 512000 * mib, GPUs: 6, Seconds: 1800},
	}
	must.Equal(t, "the nodes", parseNodes(recordedNodes), want)
}

func FuzzParseNodes(f *testing.F) {
	f.Add(recordedNodes)
	f.Fuzz(func(t *testing.T, text string) {
		for name, n := range parseNodes(text) {
			if n.Seconds < 0 {
				t.Errorf("%q of %q may run %d seconds", name, text, n.Seconds)
			}
		}
	})
}
