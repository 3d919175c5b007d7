package md

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"molrun/app/test/enginetest"
)

const (
	compareRounds  = 5
	compareSeconds = 3.5 // of each run, for the faster program
)

// TestSpeedNextToLAMMPS prints a table of steps per second of both programs. It
// takes four minutes, so it runs only if CGIDP_LAMMPS names proteins of
// enginetest/reference_rg.csv, as in
//
//	CGIDP_LAMMPS=Hst5,DSS1,aSyn140,ht2N4R go test -run SpeedNextToLAMMPS -timeout 0
//
// The programs take turns on one core, each time from the same positions and
// velocities. Seconds are CPU time, so that other programs on the machine disturb
// less.
func TestSpeedNextToLAMMPS(t *testing.T) {
	names := chosenProteins(t, "CGIDP_LAMMPS")
	pinToOneCore(t)
	rows := []string{
		"| N | LAMMPS steps/s | molrun steps/s | molrun : LAMMPS | in single rounds | start energy by LAMMPS, kJ/mol | by molrun |",
		"|---|---|---|---|---|---|---|",
	}
	for _, name := range names {
		rows = append(rows, compareSpeed(t, name).row())
	}
	fmt.Println(strings.Join(rows, "\n"))
}

func chosenProteins(t *testing.T, variable string) []string {
	t.Helper()
	chosen := os.Getenv(variable)
	switch {
	case chosen == "":
		t.Skipf("set %s to run", variable)
	case enginetest.RaceDetector:
		t.Fatal("the race detector makes steps slower: run this without it")
	}
	return strings.Split(chosen, ",")
}

// comparison holds the results of the rounds for one chain.
type comparison struct {
	residues       int
	lammps, molrun []float64 // steps per second
	// Potential energies at the start of the last round, by LAMMPS's tables and by
	// the formulas.
	tabled, exact float64
}

func compareSpeed(t *testing.T, name string) *comparison {
	t.Helper()
	d := equilibrated(t, name, 600)
	l := newLAMMPS(t, d.model, fastLAMMPS)
	trial := &comparison{residues: len(d.x)}
	trial.round(t, l, d, 1_000_000/len(d.x))
	steps := int(compareSeconds * max(trial.lammps[0], trial.molrun[0]))
	c := &comparison{residues: len(d.x)}
	for range compareRounds {
		c.round(t, l, d, steps)
	}
	return c
}

// round runs both programs from the state of d, which moves on.
func (c *comparison) round(t *testing.T, l *lammps, d *Dynamics, steps int) {
	t.Helper()
	c.exact = d.field.energy(d.x).total()
	log := l.run(t, d, steps, "-var", "seed", strconv.Itoa(1+len(c.lammps)))
	if log.late {
		t.Error("LAMMPS checked its neighbour lists too seldom, which makes it faster and wrong")
	}
	c.tabled = log.total
	enginetest.Near(t, "potential energy by LAMMPS", c.tabled, c.exact, 5*tableError*float64(len(d.x))) // beads that touch are worse than most
	start := userSeconds(t)
	advance(t, d, steps)
	c.lammps = append(c.lammps, float64(steps)/log.seconds)
	c.molrun = append(c.molrun, float64(steps)/(userSeconds(t)-start))
	last := len(c.lammps) - 1
	t.Logf("N = %d, %d steps: LAMMPS %.0f steps/s with %.0f %% of the core, molrun %.0f steps/s",
		c.residues, steps, c.lammps[last], 100*log.share, c.molrun[last])
}

func (c *comparison) row() string {
	ratios := make([]float64, len(c.lammps))
	for i := range ratios {
		ratios[i] = c.molrun[i] / c.lammps[i]
	}
	return fmt.Sprintf("| %d | %.0f | %.0f | %.2f | %.2f to %.2f | %.3f | %.3f |", c.residues, median(c.lammps),
		median(c.molrun), median(ratios), slices.Min(ratios), slices.Max(ratios), c.tabled, c.exact)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// userSeconds is the user CPU time of this process, as LAMMPS measures its own.
func userSeconds(t testing.TB) float64 {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return float64(usage.Utime.Sec) + float64(usage.Utime.Usec)/1e6
}

// pinToOneCore keeps this process and its children on one core until the test ends,
// if taskset is installed.
func pinToOneCore(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("taskset"); err != nil {
		t.Log("taskset is not installed: the programs may change cores")
		return
	}
	self := strconv.Itoa(os.Getpid())
	all := regexp.MustCompile(`[\d,-]+\s*$`).FindString(taskset(t, "-c", "-p", self))
	last := regexp.MustCompile(`\d+\s*$`).FindString(all)
	taskset(t, "-a", "-c", "-p", strings.TrimSpace(last), self)
	t.Cleanup(func() { taskset(t, "-a", "-c", "-p", strings.TrimSpace(all), self) })
}

func taskset(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := exec.Command("taskset", arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("taskset %v: %v\n%s", arguments, err, out)
	}
	return strings.TrimSpace(string(out))
}
