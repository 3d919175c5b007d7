package md

import (
	"fmt"
	"testing"
)

func BenchmarkStep(b *testing.B) {
	for _, name := range []string{"Hst5", "DSS1", "aSyn140", "ht2N4R"} {
		m := referenceModel(b, name)
		b.Run(fmt.Sprintf("N=%d", m.Size()), func(b *testing.B) {
			d := started(b, m)
			advance(b, d, 2_000_000/m.Size())
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
