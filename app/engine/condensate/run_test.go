package condensate

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// mixed returns settings of a slab with two kinds of chains.
func mixed(steps, cores int) string {
	return fmt.Sprintf(`{"components":[{"name":"sticky","sequence":"GFYRGSYDGFYRGSYD","copies":24},{"name":"plain","sequence":"GSGSGSGSGS","copies":10}],
		"box_nm":[9,9,45],"temperature_K":293,"steps":%d,"replicas":2,"sample_every":50,"frame_every":200,"seed":3,"cores":%d}`, steps, cores)
}

func TestResultsOfASlab(t *testing.T) {
	t.Parallel()
	steps := enginetest.Length(2000, 4000, 4000)
	dir, log := engine.Simulate(t, mixed(steps, 1))
	want := []string{
		"centres.csv", "components.csv", "contacts_plain_plain.csv", "contacts_plain_plain.png",
		"contacts_sticky_plain.csv", "contacts_sticky_plain.png", "contacts_sticky_sticky.csv", "contacts_sticky_sticky.png",
		"ensemble.pdb", "metrics.json", "profile.csv", "profile.svg", "profile_time.csv", "summary.json", "timeseries.csv",
		"top.cif", "top.pdb", "traj.dcd", "traj_r2.dcd",
	}
	var got []string
	entries, err := os.ReadDir(dir)
	must.OK(t, err)
	for _, e := range entries {
		got = append(got, e.Name())
	}
	must.Equal(t, "files", got, want)
	if !strings.Contains(log, "34 chains, 484 residues, in a box of 9 x 9 x 45 nm (slab), 2 replicas, 1 core") || !strings.Contains(log, "molrun:progress 1 done") || !strings.Contains(log, "\nmolrun:warning ") {
		t.Errorf("log:\n%s", log)
	}
	if s := enginetest.ReadJSON[map[string]any](t, dir, "summary.json"); s["complete"] != true {
		t.Errorf("summary: %v", s)
	}
	// The profile accounts for all chains.
	var sums [3]float64
	rows := enginetest.ReadCSV(t, dir, "profile.csv")
	must.Equal(t, "columns", rows[0], []string{"z_nm", "total_mg_mL", "sticky_mM", "plain_mM"})
	layer := 9 * 9 * 45 / float64(len(rows)-1) // nm³
	for _, row := range rows[1:] {
		for k := range sums {
			sums[k] += enginetest.Parse(t, row[1+k]) * layer
		}
	}
	s := settingsOf(t, mixed(steps, 1))
	enginetest.Near(t, "mass", sums[0]*6.02214076e-1, s.mass(), 1e-3*s.mass())
	enginetest.Near(t, "sticky chains", sums[1]*6.02214076e-4, 24, 0.01)
	enginetest.Near(t, "plain chains", sums[2]*6.02214076e-4, 10, 0.01)
	// Each row of the profile over time does, too.
	history := enginetest.ReadCSV(t, dir, "profile_time.csv")
	for k, row := range history {
		sum := 0.0
		for _, field := range row {
			sum += enginetest.Parse(t, field) * 9 * 9 * 45 / float64(len(row)) * 6.02214076e-1
		}
		if math.Abs(sum/s.mass()-1) > 1e-3 {
			t.Errorf("row %d of the profile over time: %g g/mol, want %g", k, sum, s.mass())
		}
	}
	must.Equal(t, "rows of timeseries.csv", len(enginetest.ReadCSV(t, dir, "timeseries.csv"))-1, 2*steps/50)
	must.Equal(t, "rows of centres.csv", len(enginetest.ReadCSV(t, dir, "centres.csv"))-1, 34*2*steps/200)
}

// The trajectory has whole chains, with the slab at the center of the box.
func TestTrajectoryIsCentred(t *testing.T) {
	t.Parallel()
	steps := enginetest.Length(1000, 4000, 4000)
	dir, _ := engine.Simulate(t, mixed(steps, 2))
	d := enginetest.ReadDCD(t, filepath.Join(dir, "traj.dcd"))
	if d.Beads != 484 || len(d.Frames) != steps/200 || len(d.Cells) != len(d.Frames) || d.Cells[0] != [6]float64{90, 0, 90, 0, 0, 450} {
		t.Fatalf("%d beads, %d frames, cells %v", d.Beads, len(d.Frames), d.Cells)
	}
	for f, frame := range d.Frames {
		inside := 0.0
		for k := range 24 { // sticky chains
			middle := 0.0
			for i := range 16 {
				at := 16*k + i
				middle += float64(frame[2][at]) / 16
				if i > 0 {
					dx, dy, dz := frame[0][at]-frame[0][at-1], frame[1][at]-frame[1][at-1], frame[2][at]-frame[2][at-1]
					if r := math.Sqrt(float64(dx*dx + dy*dy + dz*dz)); r > 6 {
						t.Fatalf("frame %d: a bond of %.1f Å", f, r)
					}
				}
			}
			if math.Abs(middle) > 225.01 {
				t.Fatalf("frame %d: a chain at %.1f Å, outside of the box", f, middle)
			}
			if math.Abs(middle) < 112 {
				inside++
			}
		}
		if inside < 16 {
			t.Errorf("frame %d: only %g of 24 chains in the middle half of the box", f, inside)
		}
	}
	top, err := os.ReadFile(filepath.Join(dir, "top.pdb"))
	must.OK(t, err)
	must.Equal(t, "chains in top.pdb", strings.Count(string(top), "\nTER"), 34)
}

func TestBulkAndDilute(t *testing.T) {
	t.Parallel()
	dir, log := engine.Simulate(t, fmt.Sprintf(`{"components":[{"name":"a","sequence":"GFYRGSYDGF","copies":2}],"protocol":"dilute","box_nm":[9,9,9],"steps":%d,"sample_every":20}`,
		enginetest.Length(60_000, 200_000, 200_000)))
	m := enginetest.ReadJSON[map[string]any](t, dir, "metrics.json")
	for _, name := range []string{"b22_nm3", "b22_se_nm3", "kd_mM", "kd_se_mM", "bound_fraction", "rg_nm"} {
		if _, ok := m[name].(float64); !ok {
			t.Errorf("%s is %v", name, m[name])
		}
	}
	if m["condensed"] != nil || m["cden_mM"] != nil {
		t.Errorf("two chains have phases: %v", m)
	}
	if _, err := os.Stat(filepath.Join(dir, "profile.csv")); err == nil {
		t.Error("two chains have a profile")
	}
	must.Contain(t, "log", log, "second virial coefficient")
	dir, _ = engine.Simulate(t, `{"components":[{"name":"a","sequence":"GFYRGSYDGF","copies":60}],"protocol":"bulk","concentration_mg_mL":100,"steps":2000,"sample_every":100}`)
	m = enginetest.ReadJSON[map[string]any](t, dir, "metrics.json")
	if _, ok := m["b22_nm3"]; ok || m["bound_fraction"].(float64) <= 0 || m["condensed"] != nil {
		t.Errorf("bulk: %v", m)
	}
}
