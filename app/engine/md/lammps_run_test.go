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
	"molrun/app/test/need"
)

// lammpsSettings are choices that do not change the physics.
type lammpsSettings struct {
	style  string  // of tables: bitmap, linear, lookup or spline; or exact, without tables
	size   int     // entries of a table; for bitmap, the bits of their number
	skin   float64 // nm
	lists  string  // how neighbour lists are built: nsq or bin
	every  int     // steps between checks of the lists
	newton string  // on or off
}

func (s lammpsSettings) String() string {
	return fmt.Sprintf("%s %d, skin %g %s every %d, newton %s", s.style, s.size, s.skin, s.lists, s.every, s.newton)
}

// fastLAMMPS are about the fastest settings; README.md in testdata/lammps lists the
// others that were tried.
var fastLAMMPS = lammpsSettings{style: "bitmap", size: 9, skin: 0.4, lists: "nsq", every: 10, newton: "on"}

// exactLAMMPS leave no error but rounding: LAMMPS computes by its own formulas.
var exactLAMMPS = lammpsSettings{style: "exact", skin: 0.4, lists: "nsq", every: 10, newton: "on"}

// lammps is the program with chains at given settings.
type lammps struct {
	program string
	dir     string
	ranks   int // processes
	options []string
}

// newLAMMPS writes the potentials of chains. The environment variable LAMMPS names
// a program other than lmp, CGIDP_LAMMPS_DIR a folder in which the files for LAMMPS
// are kept.
func newLAMMPS(t testing.TB, m *Model, s lammpsSettings) *lammps {
	t.Helper()
	l := &lammps{program: lammpsProgram(t), dir: lammpsDir(t, m, s), ranks: 1}
	pairs := exactPairs(m)
	if s.style != "exact" {
		pairs = tabledPairs(t, l.dir, m, s)
	}
	writeText(t, l.path("pair.in"), pairs)
	l.options = []string{
		"-var", "pair", l.path("pair.in"),
		"-var", "data", l.path("chain.data"),
		"-var", "kT", fmt.Sprintf("%.17g", m.kT),
		"-var", "friction", fmt.Sprintf("%.17g", m.Friction),
		"-var", "skin", fmt.Sprint(s.skin),
		"-var", "lists", s.lists,
		"-var", "every", fmt.Sprint(s.every),
		"-var", "newton", s.newton,
	}
	return l
}

// lammpsProgram skips the test if there is none.
func lammpsProgram(t testing.TB) string {
	t.Helper()
	name := os.Getenv("LAMMPS")
	if name == "" {
		name = "lmp"
	}
	return need.Program(t, name)
}

func lammpsDir(t testing.TB, m *Model, s lammpsSettings) string {
	t.Helper()
	keep := os.Getenv("CGIDP_LAMMPS_DIR")
	if keep == "" {
		return t.TempDir()
	}
	dir := filepath.Join(keep, fmt.Sprintf("%d-%s-%d", m.Size(), s.style, s.size))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (l *lammps) path(name string) string { return filepath.Join(l.dir, name) }

// run computes steps from the present state of d and returns the log.
func (l *lammps) run(t testing.TB, d interface{ beads() lammpsBeads }, steps int, options ...string) lammpsLog {
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

// command is the program with its ranks, without arguments.
func (l *lammps) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, l.program)
	transport := "self"
	if l.ranks > 1 {
		cmd = exec.CommandContext(ctx, "mpirun", "--bind-to", "none", "--oversubscribe", "-np", strconv.Itoa(l.ranks), l.program)
		transport = "self,vader"
	}
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OMPI_MCA_btl="+transport,
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	return cmd
}

func tail(text string, n int) string { return text[max(0, len(text)-n):] }

// lammpsLog holds numbers from the log of a run.
type lammpsLog struct {
	total, bond, pair float64 // potential energies of the first step, kJ/mol
	pressure          float64 // of the forces alone, kJ/mol/nm³
	seconds           float64 // of the loop over the steps, of each core: "Loop time" times "CPU use"
	share             float64 // fraction of its cores that it had
	late              bool    // some neighbour list may have missed pairs
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
