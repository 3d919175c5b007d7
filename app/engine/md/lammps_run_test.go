package md

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// lammps runs LAMMPS for chains with given settings.
type lammps struct {
	program string
	dir     string
	ranks   int // MPI processes
	options []string
}

// potentials is exactPairs, which is exact up to rounding, or tabledPairs, which is fast.
type potentials func(t testing.TB, dir string, m *Model) string

// newLAMMPS writes the potentials of chains. The environment variable LAMMPS names a
// program other than lmp, and CGIDP_LAMMPS_DIR a folder in which the LAMMPS files are
// kept.
func newLAMMPS(t testing.TB, m *Model, pairs potentials) *lammps {
	t.Helper()
	l := &lammps{program: lammpsProgram(t), dir: t.TempDir(), ranks: 1}
	if keep := os.Getenv("CGIDP_LAMMPS_DIR"); keep != "" {
		var err error
		l.dir, err = os.MkdirTemp(keep, fmt.Sprintf("%d-", m.Size()))
		must.OK(t, err)
	}
	writeText(t, l.path("pair.in"), pairs(t, l.dir, m))
	l.options = []string{
		"-var", "pair", l.path("pair.in"),
		"-var", "data", l.path("chain.data"),
		"-var", "kT", fmt.Sprintf("%.17g", m.kT),
		"-var", "friction", fmt.Sprintf("%.17g", m.Friction),
	}
	return l
}

// lammpsProgram returns the LAMMPS program, or skips the test if it is not installed.
func lammpsProgram(t testing.TB) string {
	t.Helper()
	name := os.Getenv("LAMMPS")
	if name == "" {
		name = "lmp"
	}
	return must.Installed(t, name)
}

func (l *lammps) path(name string) string { return filepath.Join(l.dir, name) }

// lammpsSource provides the initial state for LAMMPS.
type lammpsSource interface{ beads() lammpsBeads }

// run computes steps from the current state of d and returns the log.
func (l *lammps) run(t testing.TB, d lammpsSource, steps int, options ...string) lammpsLog {
	t.Helper()
	writeLAMMPSData(t, l.path("chain.data"), d.beads())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := l.command(ctx)
	cmd.Args = append(cmd.Args, "-in", "testdata/lammps/in.idp", "-log", "none", "-nocite", "-var", "steps", strconv.Itoa(steps))
	cmd.Args = append(append(cmd.Args, l.options...), options...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, tail(string(out), 2000))
	}
	return readLAMMPSLog(t, string(out))
}

// command returns the command that runs LAMMPS with its ranks, without arguments.
func (l *lammps) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, l.program)
	transport := "self"
	// Without mpirun, Open MPI starts a daemon per program, which occasionally fails if
	// several start at once.
	isolated := "OMPI_MCA_ess_singleton_isolated=1"
	if l.ranks > 1 {
		cmd = exec.CommandContext(ctx, "mpirun", "--bind-to", "none", "--oversubscribe", "-np", strconv.Itoa(l.ranks), l.program)
		transport, isolated = "self,vader", "OMPI_MCA_ess_singleton_isolated=0"
	}
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OMPI_MCA_btl="+transport, isolated,
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	return cmd
}

func tail(text string, n int) string { return text[max(0, len(text)-n):] }

// lammpsLog holds values from the log of a run.
type lammpsLog struct {
	total, bond, pair float64 // potential energies of the first step, kJ/mol
	pressure          float64 // from forces only, kJ/mol/nm³
	seconds           float64 // for the step loop, per core: "Loop time" times "CPU use"
	share             float64 // CPU use, as a fraction
	late              bool    // a neighbor list might have missed pairs
}

var (
	loopTime  = regexp.MustCompile(`(?m)^Loop time of (\S+) on \d+ procs`)
	cpuUse    = regexp.MustCompile(`(?m)^(\S+)% CPU use with \d+ MPI tasks`)
	firstStep = regexp.MustCompile(`(?m)^ *Step +Temp +PotEng +E_bond +E_pair +c_virial *\n(?:WARNING.*\n)*? *0 +(.*)$`)
	inTime    = regexp.MustCompile(`(?m)^Dangerous builds = 0$`)
)

func readLAMMPSLog(t testing.TB, text string) lammpsLog {
	t.Helper()
	var first []float64
	for column := range strings.FieldsSeq(lammpsField(t, firstStep, text)) {
		first = append(first, enginetest.Parse(t, column))
	}
	if len(first) != 5 {
		t.Fatalf("LAMMPS gave %v for the first step", first)
	}
	share := enginetest.Parse(t, lammpsField(t, cpuUse, text)) / 100
	return lammpsLog{
		total: first[1], bond: first[2], pair: first[3], pressure: first[4],
		seconds: enginetest.Parse(t, lammpsField(t, loopTime, text)) * share,
		share:   share,
		late:    !inTime.MatchString(text),
	}
}

func lammpsField(t testing.TB, pattern *regexp.Regexp, text string) string {
	t.Helper()
	match := pattern.FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("no %s in the log of LAMMPS:\n%s", pattern, tail(text, 2000))
	}
	return match[1]
}
