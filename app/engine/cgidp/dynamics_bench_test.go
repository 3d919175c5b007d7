package cgidp

import (
	"fmt"
	"testing"
)

func BenchmarkStep(b *testing.B) {
	for _, name := range []string{"Hst5", "DSS1", "aSyn140", "ht2N4R"} {
		p := referenceProtein(b, name)
		b.Run(fmt.Sprintf("N=%d", len(p.sequence)), func(b *testing.B) {
			d := p.dynamics(b)
			advance(b, d, 2_000_000/len(p.sequence))
			b.ReportAllocs()
			for b.Loop() {
				advance(b, d, 1)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
			b.ReportMetric(float64(len(d.field.stick.tiles)), "stick-tiles")
			b.ReportMetric(float64(len(d.field.screen.tiles)), "screen-tiles")
		})
	}
}
