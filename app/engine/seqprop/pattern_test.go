package seqprop

import (
	"math"
	"math/rand/v2"
	"testing"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s is %v; want %v", what, got, want)
	}
}

// TestPatternsAreThosePublished checks variants of 25 E and 25 K against kappa of Das and
// Pappu (10.1073/pnas.1304749110) and the charge decoration of Sawle and Ghosh
// (10.1063/1.4929391).
func TestPatternsAreThosePublished(t *testing.T) {
	for _, v := range []struct {
		sequence          string
		kappa, decoration float64
	}{
		{"EKEKEKEKEKEKEKEKEKEKEKEKEKEKEKEKEKEKEKEKEKEKEKEKEK", 0.001, -0.413},
		{"EEEKKKEEEKKKEEEKKKEEEKKKEEEKKKEEEKKKEEEKKKEEEKKKEK", 0.003, -1.010},
		{"KEKKKEKKEEKKEEKEKEKEKEEKKKEEKEKEKEKKKEEKEKEEKKEEEE", 0.014, -1.495},
		{"KEKEEKEKKKEEEEKEKKKKEEKEKEKEKEEKKEEKKKKEEKEEKEKEKE", 0.024, -0.738},
		{"EEEEKKKKEEEEKKKKEEEEKKKKEEEEKKKKEEEEKKKKEEEEKKKKEK", 0.045, -1.462},
		{"EEEEEKKKKKEEEEEKKKKKEEEEEKKKKKEEEEEKKKKKEEEEEKKKKK", 0.194, -2.070},
		{"EEEEEKEEEEEEEEEEEKEEKEKKKKKKEKKKKKKKEKEKKKKEKKEEKK", 0.355, -11.457},
		{"KEEEEKEEEEEEEEEEEEEEEEEEEEEKKKKKKKKKKKKKKKKKKKKKKK", 0.876, -22.571},
		{"EEEEEEEEEEEEEEEEEEEEEEEEEKKKKKKKKKKKKKKKKKKKKKKKKK", 1, -27.842},
	} {
		near(t, "kappa of "+v.sequence, kappa(charges(v.sequence)), v.kappa, 0.0007)
		near(t, "charge decoration of "+v.sequence, chargeDecoration(charges(v.sequence)), v.decoration, 0.0006)
	}
}

// TestNoArrangementIsMoreSeparated compares shuffled sequences of random composition with
// the candidates for the most asymmetric arrangement.
func TestNoArrangementIsMoreSeparated(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		plus, minus, neutral := 1+random.IntN(20), 1+random.IntN(20), random.IntN(40)
		if plus+minus+neutral < longWindow || plus > 3*minus || minus > 3*plus {
			continue
		}
		blocks := separated(plus, minus, neutral)
		largest := 0.0
		for _, q := range blocks {
			if p, m := charged(q); p != plus || m != minus || len(q) != plus+minus+neutral {
				t.Fatalf("%d, %d, %d became %v", plus, minus, neutral, q)
			}
			largest = max(largest, asymmetry(q))
		}
		q := blocks[random.IntN(len(blocks))]
		for range 30 {
			random.Shuffle(len(q), func(i, j int) { q[i], q[j] = q[j], q[i] })
			if got := asymmetry(q); got > largest*1.1 {
				t.Errorf("%v has the asymmetry %v, more than %v", q, got, largest)
			}
			if k := kappa(q); !(k >= 0 && k <= 1) {
				t.Errorf("kappa of %v is %v", q, k)
			}
		}
	}
}

func TestPatternsThatMeanNothingAreLeftOut(t *testing.T) {
	for _, sequence := range []string{"GGGGGGGGGG", "KKKKKKGGGG", "GGEEEEEEEE", "KE", "KEKEG", "GKGGGGGGGG"} {
		if got := kappa(charges(sequence)); !math.IsNaN(got) {
			t.Errorf("kappa of %s is %v", sequence, got)
		}
	}
	for _, sequence := range []string{"GGGGGGGGGG", "GKGGGGGGGG"} {
		if got := chargeDecoration(charges(sequence)); !math.IsNaN(got) {
			t.Errorf("charge decoration of %s is %v", sequence, got)
		}
	}
	near(t, "charge decoration of KK", chargeDecoration(charges("KK")), 0.5, 1e-12)
}
