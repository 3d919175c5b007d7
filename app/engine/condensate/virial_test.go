package condensate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"molrun/app/engine/md"
	"molrun/app/test/enginetest"
	"molrun/app/test/must"
)

// TestPairsByTwoWays compares the second virial coefficient and the dissociation constant
// of two chains in a box with averages over conformations of isolated chains: -1/2 ∫
// <exp(-U/kT) - 1> d³r, and the integral of exp(-U/kT) over configurations in contact.
// The second method shares no box, neighbor list, force or dynamics with the first, and
// computes energies from the formulas. The test compares fractions of time, whose errors
// are symmetric. In seconds, the first method samples a few dozen encounters, enough for
// sign and magnitude; `make physics` is more precise.
func TestPairsByTwoWays(t *testing.T) {
	const edge = 9.
	pairs := [][2]string{{"RRRRR", "EEEEE"}} // opposite charges attract
	if enginetest.Physics() {
		pairs = append(pairs, [2]string{"WFYWFYWFYWFYWFY", "WFYWFYWFYWFYWFY"}, [2]string{"KKKKKK", "KKKKKK"})
	}
	for _, pair := range pairs {
		t.Run(pair[0], func(t *testing.T) {
			t.Parallel()
			want := mayer(t, pair, edge, enginetest.Length(30_000, 200_000, 3_000_000))
			components := fmt.Sprintf(`{"name":"a","sequence":%q,"copies":1},{"name":"b","sequence":%q,"copies":1}`, pair[0], pair[1])
			dir, _ := engine.Simulate(t, fmt.Sprintf(`{"protocol":"dilute","components":[%s],"box_nm":[%g,%g,%g],"temperature_K":293,"charged_termini":false,"steps":%d,"sample_every":50}`,
				components, edge, edge, edge, enginetest.Length(100_000, 1_000_000, 10_000_000)))
			m := enginetest.ReadJSON[map[string]any](t, dir, metricsFile)
			masses := md.NewModel(pair[0], md.Conditions{}).TotalMass() * md.NewModel(pair[1], md.Conditions{}).TotalMass()
			enginetest.Near(t, "B22 in mL mol/g²", figureOf(m, "b22_mL_mol_g2"), figureOf(m, "b22_nm3")*602.214/masses, 1e-4*math.Abs(figureOf(m, "b22_mL_mol_g2")))
			t.Logf("B22 = %.1f±%.1f nm³, Kd = %.2f±%.2f mM", figureOf(m, "b22_nm3"), figureOf(m, "b22_se_nm3"), figureOf(m, "kd_mM"), figureOf(m, "kd_se_mM"))
			got := fractions(m, edge)
			agree(t, "nearby", got.near, want.near)
			agree(t, "bound", got.bound, want.bound)
		})
	}
}

// meetings are the fractions of time that two chains are nearby and in contact.
type meetings struct{ near, bound figure }

// fractions returns the fractions of time from which the virial coefficient and the
// dissociation constant of a run were calculated.
func fractions(m map[string]any, edge float64) meetings {
	box, ball := edge*edge*edge, math.Pi/6*edge*edge*edge
	excess := -2 * figureOf(m, "b22_nm3")
	near := (ball + excess) / (box + excess)
	one := MilliMol / box
	bound := 1 / (1 + figureOf(m, "kd_mM")/one)
	return meetings{
		figure{near, 2 * figureOf(m, "b22_se_nm3") * (1 - near) * (1 - near) / (box - ball)},
		figure{bound, figureOf(m, "kd_se_mM") / one * bound * bound},
	}
}

func agree(t *testing.T, what string, got, want figure) {
	t.Helper()
	t.Logf("%s: %.4f±%.4f of two that meet, %.4f±%.4f of two that never met", what, got.value, got.se, want.value, want.se)
	// A run of 100,000 steps underestimates its error.
	if !(math.Abs(got.value-want.value) < 4*math.Hypot(got.se, want.se)+enginetest.UnlessPhysics(0.05, 0)) {
		t.Error("they differ")
	}
}

// mayer samples the integrals up to half an edge, from randomly rotated conformations,
// and returns the resulting fractions for two chains in a box.
func mayer(t *testing.T, pair [2]string, edge float64, samples int) meetings {
	t.Helper()
	const shapes, kT = 1000, 8.31446261815324e-3 * 293
	of := residueTable(t)
	a, b := conformations(t, pair[0], 1, shapes), conformations(t, pair[1], 2, shapes)
	rng := rand.New(rand.NewPCG(1, 2))
	var excess, contact integral
	for range samples {
		r := edge / 2 * rng.Float64()
		turn, away := rotation(rng), md.Vec{}.AddScaled(r, rotation(rng)[0])
		x, y := a[rng.IntN(shapes)], b[rng.IntN(shapes)]
		u, nearest := 0.0, edge
		for j, at := range y {
			at = away.AddScaled(at.X, turn[0]).AddScaled(at.Y, turn[1]).AddScaled(at.Z, turn[2])
			for i := range x {
				apart := at.Sub(x[i]).Norm()
				u += of[pair[0][i]].energy(of[pair[1][j]], apart)
				nearest = min(nearest, apart)
			}
		}
		shell := 4 * math.Pi * r * r * edge / 2
		excess.add(shell * (math.Exp(-u/kT) - 1))
		if nearest < 1 {
			contact.add(shell * math.Exp(-u/kT))
		} else {
			contact.add(0)
		}
	}
	box, ball := edge*edge*edge, math.Pi/6*edge*edge*edge
	e, c := excess.mean(), contact.mean()
	t.Logf("B22 = %.1f±%.1f nm³ of two that never met", -e.value/2, e.se/2)
	all := box + e.value
	return meetings{
		figure{(ball + e.value) / all, (box - ball) / (all * all) * e.se},
		figure{c.value / all, c.se / all},
	}
}

// integral is a mean of samples.
type integral struct{ count, sum, squares float64 }

func (i *integral) add(v float64) {
	i.count++
	i.sum += v
	i.squares += v * v
}

func (i *integral) mean() figure {
	mean := i.sum / i.count
	return figure{mean, math.Sqrt((i.squares/i.count - mean*mean) / i.count)}
}

// conformations returns conformations of an isolated chain, each centered on the origin.
func conformations(t *testing.T, residues string, number, count int) [][]md.Vec {
	t.Helper()
	model := md.NewModel(residues, md.Conditions{Temperature: 293, PH: 7, IonicStrength: 0.15, Friction: 0.2})
	d := md.NewDynamics(model, md.NewRandom(1, number, 1))
	must.OK(t, d.Start())
	var all [][]md.Vec
	for range count {
		must.OK(t, d.Advance(100))
		var middle md.Vec
		for _, at := range d.Positions() {
			middle = middle.AddScaled(1/float64(len(residues)), at)
		}
		var x []md.Vec
		for _, at := range d.Positions() {
			x = append(x, at.Sub(middle))
		}
		all = append(all, x)
	}
	return all
}

// rotation returns a random set of three orthogonal axes.
func rotation(rng *rand.Rand) [3]md.Vec {
	random := func() md.Vec { return md.Vec{X: rng.NormFloat64(), Y: rng.NormFloat64(), Z: rng.NormFloat64()} }
	unit := func(v md.Vec) md.Vec { return md.Vec{}.AddScaled(1/v.Norm(), v) }
	x, y := unit(random()), random()
	y = unit(y.AddScaled(-(x.X*y.X + x.Y*y.Y + x.Z*y.Z), x))
	return [3]md.Vec{x, y, {X: x.Y*y.Z - x.Z*y.Y, Y: x.Z*y.X - x.X*y.Z, Z: x.X*y.Y - x.Y*y.X}}
}

// residue is a row of the residue table of the model.
type residue struct{ sigma, lambda, charge float64 }

func residueTable(t *testing.T) map[byte]residue {
	t.Helper()
	all := map[byte]residue{}
	for _, row := range enginetest.ReadCSV(t, "..", "md", "residues.csv")[1:] {
		all[row[0][0]] = residue{enginetest.Parse(t, row[4]), enginetest.Parse(t, row[3]), enginetest.Parse(t, row[5])}
	}
	return all
}

// energy returns the energy of two beads of different chains at 293 K and 0.15 mol/L, for
// which the constants are precomputed.
func (a residue) energy(b residue, r float64) float64 {
	pair := enginetest.Pair{
		Sigma: (a.sigma + b.sigma) / 2, Lambda: (a.lambda + b.lambda) / 2,
		Strength: 1.730014 * a.charge * b.charge, Kappa: 1.269740,
	}
	ashbaughHatch, _ := pair.AshbaughHatch(r)
	debyeHueckel, _ := pair.DebyeHueckel(r)
	return ashbaughHatch + debyeHueckel
}
