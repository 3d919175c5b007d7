package md

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"molrun/app/test/enginetest"
)

// speeds are steps per second of one program: by the clock, and by the CPU time of its cores.
type speeds struct{ clock, cpu []float64 }

func (s *speeds) add(steps int, clock, cpu float64) {
	s.clock = append(s.clock, float64(steps)/clock)
	s.cpu = append(s.cpu, float64(steps)/cpu)
}

// over is the speed by that of another program, round by round: the median and the range.
func over(a, b []float64) (middle, low, high float64) {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return median(ratios), slices.Min(ratios), slices.Max(ratios)
}

// timed advances by some steps and adds the speed, for a number of cores.
func (s *speeds) timed(t testing.TB, d *Motion, steps int) {
	t.Helper()
	cpu, clock := userSeconds(t), time.Now()
	d.advance(t, steps)
	s.add(steps, time.Since(clock).Seconds(), (userSeconds(t)-cpu)/float64(d.team.Size()))
}

// asked skips a test that takes minutes unless an environment variable is set.
func asked(t *testing.T, variable string) {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skipf("set %s to run", variable)
	}
	if enginetest.RaceDetector {
		t.Fatal("the race detector makes steps slower: run this without it")
	}
}

// TestSlabSpeedNextToLAMMPS prints how fast both programs move a slab of 100 chains of 202 residues: LAMMPS
// with its own formulas and with tables, with one process and two, and molrun with one core and two. They
// take turns, each time from the same positions. CPU time counts the waiting of a core for the others.
func TestSlabSpeedNextToLAMMPS(t *testing.T) {
	asked(t, "CGIDP_LAMMPS_SLAB")
	lammpsProgram(t)
	const copies, steps = 100, 300
	one := slabOf(t, copies, 1)
	rows := []string{
		"| cores | LAMMPS | its steps/s by the clock (CPU time) | molrun | molrun : LAMMPS | in single rounds |",
		"|---|---|---|---|---|---|",
	}
	for _, cores := range []int{1, 2} {
		d := one.with(t, cores)
		exact, tables := slabLAMMPS(t, d, exactLAMMPS, cores), slabLAMMPS(t, d, fastLAMMPS, cores)
		var byFormulas, byTables, own speeds
		for range compareRounds {
			exact.timed(t, &byFormulas, d, steps/10)
			own.timed(t, d, steps)
			tables.timed(t, &byTables, d, steps/10)
		}
		for name, other := range map[string]speeds{"formulas": byFormulas, "tables": byTables} {
			clock, lowest, highest := over(own.clock, other.clock)
			cpu, low, high := over(own.cpu, other.cpu)
			rows = append(rows, fmt.Sprintf("| %d | %s | %.1f (%.1f) | %.1f (%.1f) | %.2f (%.2f) | %.2f to %.2f (%.2f to %.2f) |", cores, name,
				median(other.clock), median(other.cpu), median(own.clock), median(own.cpu), clock, cpu, lowest, highest, low, high))
		}
	}
	fmt.Println(strings.Join(rows, "\n"))
}

// slabLAMMPS is LAMMPS for a slab, with one process for each core.
func slabLAMMPS(t testing.TB, d *Motion, s lammpsSettings, cores int) *lammps {
	t.Helper()
	s.lists = "bin"
	l := newLAMMPS(t, d.mix.shared, s)
	l.ranks = cores
	l.options = append(l.options, "-var", "sides", "p", "-suffix", "opt")
	return l
}

// timed adds the speed of some steps.
func (l *lammps) timed(t testing.TB, s *speeds, d *Motion, steps int) {
	t.Helper()
	log := l.run(t, d, steps)
	if log.late {
		t.Error("LAMMPS checked its neighbour lists too seldom, which makes it faster and wrong")
	}
	s.add(steps, log.seconds/log.share, log.seconds)
}

// TestSlabCosts prints what a step of a bead costs in slabs of 2,020 to 101,000 beads with one core and two,
// and how much memory a bead takes.
func TestSlabCosts(t *testing.T) {
	asked(t, "CGIDP_SLAB_COSTS")
	const beadSteps = 1_000_000
	type row struct {
		d               [2]*Motion
		filled          *Motion // by the dense phase, without a surface
		memory          float64 // bytes of a bead
		one, two, dense speeds
	}
	var all []*row
	for _, copies := range []int{10, 25, 100, 250, 500} {
		r := &row{}
		before := heap()
		r.d[0] = slabOf(t, copies, 1)
		r.memory = float64(heap()-before) / float64(r.d[0].mix.Size())
		r.d[1] = r.d[0].with(t, 2)
		r.filled = denseOf(t, copies, 1)
		all = append(all, r)
	}
	for range compareRounds {
		for _, r := range all {
			steps := max(20, beadSteps/r.d[0].mix.Size())
			r.one.timed(t, r.d[0], steps)
			r.dense.timed(t, r.filled, steps)
			r.two.timed(t, r.d[1], steps)
		}
	}
	rows := []string{
		"| beads | ns of CPU for a bead and step, one core | without a surface | two cores | two cores : one, by the clock | efficiency by CPU time | bytes of a bead |",
		"|---|---|---|---|---|---|---|",
	}
	for _, r := range all {
		beads := float64(r.d[0].mix.Size())
		faster, _, _ := over(r.two.clock, r.one.clock)
		efficiency, _, _ := over(r.two.cpu, r.one.cpu)
		rows = append(rows, fmt.Sprintf("| %.0f | %.0f | %.0f | %.0f | %.2f | %.2f | %.0f |",
			beads, 1e9/beads/median(r.one.cpu), 1e9/beads/median(r.dense.cpu), 1e9/beads/(median(r.two.cpu)/2), faster, efficiency/2, r.memory))
	}
	fmt.Println(strings.Join(rows, "\n"))
}
