package cgidp

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// TestAgreement compares mean Rg with published CALVADOS 2 values (Tesei et al.,
// Nature 2024, 626, 897). It takes an hour or more, so it runs only if
// CGIDP_AGREEMENT names proteins of testdata/reference_rg.csv, as in
//
//	CGIDP_AGREEMENT=NLS,TRF2_BR,IB5 go test -run Agreement -timeout 0 -v
func TestAgreement(t *testing.T) {
	chosen := os.Getenv("CGIDP_AGREEMENT")
	if chosen == "" {
		t.Skip("set CGIDP_AGREEMENT to run")
	}
	var signed, absolute moments
	for name := range strings.SplitSeq(chosen, ",") {
		p := referenceProtein(t, name)
		c := p.conditions
		// 0.8 % takes 75 000 steps per residue, and up to twice that.
		dir, _ := simulate(t, fmt.Sprintf(
			`{"sequences":[%q],"temperature_K":%g,"pH":%g,"ionic_strength_M":%g,"steps":%d}`,
			p.sequence, c.temperature, c.pH, c.ionicStrength, 80_000*len(p.sequence)))
		var m struct {
			Rg float64 `json:"rg_nm"`
			SE float64 `json:"rg_se_nm"`
		}
		readJSON(t, &m, dir, "metrics.json")
		z := (m.Rg - p.rg) / math.Hypot(m.SE, p.rgError)
		t.Logf("%s: Rg %.3f ± %.3f nm, published %.3f ± %.3f, z %+.1f", name, m.Rg, m.SE, p.rg, p.rgError, z)
		if math.Abs(z) > 3.5 {
			t.Errorf("%s: off by %.1f standard errors", name, z)
		}
		signed.add(m.Rg/p.rg - 1)
		absolute.add(math.Abs(m.Rg/p.rg - 1))
	}
	t.Logf("mean difference %+.1f %%, mean size %.1f %%", 100*signed.mean, 100*absolute.mean)
	if signed.n >= 12 && (absolute.mean > 0.025 || math.Abs(signed.mean) > 0.012) {
		t.Error("the differences are more than sampling errors")
	}
}
