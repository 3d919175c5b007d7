package md

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

const (
	compareRounds  = 5
	compareSeconds = 3.5 // per run of one chain, for the faster program
)

// asked skips a measurement that takes minutes unless an environment variable is set, and
// returns its value.
func asked(t *testing.T, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	switch {
	case value == "":
		t.Skipf("set %s to run", variable)
	case enginetest.RaceDetector:
		t.Fatal("the race detector makes steps slower: run this without it")
	}
	return value
}

// speeds holds the steps per second of one program, by wall-clock time and by CPU time of
// its cores, which other programs on the machine affect less.
type speeds struct{ clock, cpu []float64 }

func (s *speeds) add(steps int, clock, cpu float64) {
	s.clock = append(s.clock, float64(steps)/clock)
	s.cpu = append(s.cpu, float64(steps)/cpu)
}

// ours adds the speed of molrun with a number of cores.
func (s *speeds) ours(t testing.TB, d interface{ Advance(steps int) error }, cores, steps int) {
	t.Helper()
	cpu, clock := userSeconds(t), time.Now()
	must.OK(t, d.Advance(steps))
	s.add(steps, time.Since(clock).Seconds(), (userSeconds(t)-cpu)/float64(cores))
}

// theirs adds the speed of LAMMPS.
func (s *speeds) theirs(t testing.TB, l *lammps, d lammpsSource, steps int) {
	t.Helper()
	log := l.run(t, d, steps)
	if log.late {
		t.Error("LAMMPS checked its neighbour lists too seldom, which makes it faster and wrong")
	}
	s.add(steps, log.seconds/log.share, log.seconds)
}

// over returns the median and the range of the ratio of two speeds over the rounds.
func over(a, b []float64) (middle, low, high float64) {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return median(ratios), slices.Min(ratios), slices.Max(ratios)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// userSeconds returns the user CPU time of this process, as measured by LAMMPS for
// itself.
func userSeconds(t testing.TB) float64 {
	t.Helper()
	var usage syscall.Rusage
	must.OK(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Sec) + float64(usage.Utime.Usec)/1e6
}

// TestSpeedNextToLAMMPS prints a table of the steps per second of both programs, by CPU
// time. It takes four minutes, so it runs only if CGIDP_LAMMPS names proteins of
// enginetest/reference_rg.csv, for example
//
//	CGIDP_LAMMPS=Hst5,DSS1,aSyn140,ht2N4R taskset -c 1 go test -run TestSpeedNextToLAMMPS -timeout 0
//
// The programs alternate, each time starting from the same positions and velocities.
func TestSpeedNextToLAMMPS(t *testing.T) {
	fmt.Println("| N | LAMMPS steps/s | molrun steps/s | molrun : LAMMPS | in single rounds |\n|---|---|---|---|---|")
	for name := range strings.SplitSeq(asked(t, "CGIDP_LAMMPS"), ",") {
		d := equilibrated(t, name, 600)
		l := newLAMMPS(t, d.model, tabledPairs)
		var other, own speeds
		round := func(steps int) {
			other.theirs(t, l, d, steps)
			own.ours(t, d, 1, steps)
		}
		round(1_000_000 / len(d.x))
		steps := int(compareSeconds * max(other.cpu[0], own.cpu[0]))
		other, own = speeds{}, speeds{}
		for range compareRounds {
			round(steps)
		}
		ratio, low, high := over(own.cpu, other.cpu)
		fmt.Printf("| %d | %.0f | %.0f | %.2f | %.2f to %.2f |\n", len(d.x), median(other.cpu), median(own.cpu), ratio, low, high)
	}
}

// TestSlabSpeedNextToLAMMPS prints the speed of both programs for a slab of 100 chains of
// 202 residues: LAMMPS with its own formulas and with tables, with one process and two,
// and molrun with one core and two. The programs alternate, each time starting from the
// same positions. CPU time includes the time that cores spend waiting for each other.
func TestSlabSpeedNextToLAMMPS(t *testing.T) {
	asked(t, "CGIDP_LAMMPS_SLAB")
	const copies, steps = 100, 300
	one := slabOf(t, copies, 1)
	fmt.Println("| cores | LAMMPS | its steps/s by the clock (CPU time) | molrun | molrun : LAMMPS | in single rounds |\n|---|---|---|---|---|---|")
	for _, cores := range []int{1, 2} {
		d := one.with(t, cores)
		for name, pairs := range map[string]potentials{"formulas": exactPairs, "tables": tabledPairs} {
			l := newLAMMPS(t, d.mix.shared, pairs)
			l.ranks = cores
			l.options = append(l.options, "-var", "lists", "bin", "-var", "sides", "p", "-suffix", "opt")
			var other, own speeds
			for range compareRounds {
				other.theirs(t, l, d, steps/10)
				own.ours(t, d, cores, steps)
			}
			clock, lowest, highest := over(own.clock, other.clock)
			cpu, low, high := over(own.cpu, other.cpu)
			fmt.Printf("| %d | %s | %.1f (%.1f) | %.1f (%.1f) | %.2f (%.2f) | %.2f to %.2f (%.2f to %.2f) |\n", cores, name,
				median(other.clock), median(other.cpu), median(own.clock), median(own.cpu), clock, cpu, lowest, highest, low, high)
		}
	}
}

func BenchmarkStep(b *testing.B) {
	for _, name := range []string{"Hst5", "DSS1", "aSyn140", "ht2N4R"} {
		d := equilibrated(b, name, 600)
		b.Run(fmt.Sprintf("N=%d", d.model.Size()), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				advance(b, d, 1)
			}
		})
	}
}

func BenchmarkMotion(b *testing.B) {
	for _, copies := range []int{10, 100} {
		for _, cores := range []int{1, 2} {
			b.Run(fmt.Sprintf("beads=%d/cores=%d", 202*copies, cores), func(b *testing.B) {
				d := slabOf(b, copies, cores)
				b.ReportAllocs()
				for b.Loop() {
					d.advance(b, 1)
				}
			})
		}
	}
}
