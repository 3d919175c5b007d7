package storage

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/base/unit"
)

// TestPagesHaveSpaceForGrowingRecords submits jobs in groups, which then run and finish one by one. In
// the end three records share a page, as if they had been stored at once.
func TestPagesHaveSpaceForGrowingRecords(t *testing.T) {
	s := openNew(t)
	const n, group = 300, 30
	all := testJobs(n)
	for some := range slices.Chunk(all, group) {
		for _, j := range some {
			j.Settings = json.RawMessage(`{"note":"` + strings.Repeat("x", 560) + `"}`)
		}
		putJobs(t, s, some...)
	}
	for some := range slices.Chunk(all, 7) {
		for _, j := range some {
			j.Status, j.StartedAt, j.CompletedAt = app.Completed, j.CreatedAt, unit.At(j.CreatedAt.Add(1e9))
			j.Metrics = &app.Metrics{QueueSeconds: 12.345, RunSeconds: 1234.567, CPUSeconds: 1234.567, MaxRSSBytes: 1 << 31}
		}
		putJobs(t, s, some...)
	}
	view(t, s, func(atx app.Tx) error {
		stats := atx.(tx).Bucket(bucketJobs).Stats()
		if stats.LeafInuse/n < 850 || stats.LeafAlloc/n > 1500 {
			t.Errorf("a record of %d bytes takes %d, want at most 1500", stats.LeafInuse/n, stats.LeafAlloc/n)
		}
		return nil
	})
}
