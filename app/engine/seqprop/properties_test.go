package seqprop

import (
	"math"
	"strings"
	"testing"
)

const (
	synuclein = "MDVFMKGLSKAKEGVVAAAEKTKQGVAEAAGKTKEGVLYVGSKTKEGVVHGVATVAEKTKEQVTNVGGAVVTGVTAVAQKTVEGAGSIAAATGFVKKDQLGKNEEGAPQEGILEDMPVDPDNEAYEMPSEEGYQDYEPEA"
	lysozyme  = "KVFGRCELAAAMKRHGLDNYRGYSLGNWVCAAKFESNFNTQATNRNTDGSTDYGILQINSRWWCNDGRTPGSRNLCNIPCSALLSSDITASVNCAKKIVSDGNGMNAWVAWRNRCKGTDVQAWIRGCRL"
)

// TestPropertiesAgreeWithBiopython compares the properties with those of
// Bio.SeqUtils.ProtParam in Biopython 1.80, which assigns the pK value of a C-terminal D
// or E to the terminus instead of the side chain.
func TestPropertiesAgreeWithBiopython(t *testing.T) {
	for _, want := range []struct {
		sequence                               string
		mass, pI, charge, hydropathy, aromatic float64
		extinction, disulfide                  float64
	}{
		{synuclein, 14459.985, 4.66571, -9.70324, -0.402857, 0.0428571, 5960, 5960},
		{lysozyme, 14313.004, 9.32376, 7.38059, -0.472093, 0.0930233, 37470, 37970},
		{"DSHAKRHHGYKRKFHEKHHSHRGY", 3036.2934, 10.28337, 4.80030, -2.454167, 0.125, 2980, 2980},
		{"GGGGG", 303.2718, 5.525, -0.44255, -0.4, 0, 0, 0},
	} {
		p := PropertiesOf("a", want.sequence, 7.4)
		of := " of " + want.sequence
		near(t, "mass"+of, p.Mass, want.mass, 0.05)
		near(t, "pI"+of, p.IsoelectricPoint, want.pI, 1e-4)
		near(t, "charge"+of, p.Charge, want.charge, 1e-4)
		near(t, "hydropathy"+of, p.Hydropathy, want.hydropathy, 1e-6)
		near(t, "aromatic"+of, p.Aromatic, want.aromatic, 1e-6)
		near(t, "extinction"+of, p.Extinction, want.extinction, 0)
		near(t, "extinction with disulfides"+of, p.ExtinctionDisulfide, want.disulfide, 0)
	}
}

func TestDisorderByComposition(t *testing.T) {
	const prothymosin = "MSDAAVDTSSEITTKDLKEKKEVVEEAENGRDAPANGNANEENGEQEADNEVDEEEEEGGEEEEEEEEGDGEEEDGDEDEEAESATGKRAAEDDEDDDVDTKKQKTDEDD"
	if a, b := PropertiesOf("", prothymosin, 7).Disorder, PropertiesOf("", lysozyme, 7).Disorder; !(a > 0.4 && b < 0) {
		t.Errorf("prothymosin alpha is at %v, lysozyme at %v", a, b)
	}
	if d := PropertiesOf("", strings.Repeat("EK", 20), 7).Disorder; !(d > 0) {
		t.Errorf("a polyampholyte is at %v", d)
	}
	if d := PropertiesOf("", strings.Repeat("ILVAF", 10), 7).Disorder; !(d < 0) {
		t.Errorf("a hydrophobic sequence is at %v", d)
	}
	if d := PropertiesOf("", strings.Repeat("EK", 14), 7).Disorder; !math.IsNaN(d) {
		t.Errorf("a peptide has %v", d)
	}
}

// TestLastAcidHasItsOwnPK checks that an acid is half charged at the pH equal to its pK,
// which differs at the C-terminus.
func TestLastAcidHasItsOwnPK(t *testing.T) {
	for sequence, want := range map[string]float64{"GE": -0.5, "EG": -1 / (1 + math.Pow(10, 4.45-4.75))} {
		all := groups(sequence)
		got := netCharge(all, 4.75) - netCharge(groups(strings.ReplaceAll(sequence, "E", "G")), 4.75)
		if sequence == "EG" { // its N-terminal amine differs, too
			got -= 1/(1+math.Pow(10, 4.75-7.7)) - 1/(1+math.Pow(10, 4.75-7.5))
		}
		near(t, "charge of the side chain of "+sequence, got, want, 1e-9)
	}
}

func TestOnlyTheLengthOfUnknownLetters(t *testing.T) {
	for sequence, note := range map[string]string{
		"MKXA": "only the length: X at position 3 is not one of the twenty amino acids",
		"U":    "only the length: U at position 1 is not one of the twenty amino acids",
		"":     "empty",
	} {
		p := PropertiesOf("a", sequence, 7)
		if p.Length != len(sequence) || p.Note != note {
			t.Errorf("%q: %d residues, %q", sequence, p.Length, p.Note)
		}
		for _, c := range columns {
			if v := c.value(&p); c.name != "length" && !math.IsNaN(v) {
				t.Errorf("%q has %s %v", sequence, c.name, v)
			}
		}
	}
}
