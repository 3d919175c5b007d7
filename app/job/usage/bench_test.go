package usage_test

import (
	"fmt"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
	"molrun/app/job/usage"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

// BenchmarkReport reports on 30 days of 10 users after so many jobs. The cost follows from
// days, users and types, so it is the same.
func BenchmarkReport(b *testing.B) {
	for _, jobs := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(jobs), func(b *testing.B) {
			s := fixture.New(b, app.Options{})
			fill(b, s, jobs)
			reports := usage.New(s.Store, s.Now)
			for b.Loop() {
				r, err := reports.Of(b.Context(), app.Operator(), usage.Query{By: usage.ByUser})
				if err != nil || r.Total.Completed != int64(jobs) {
					b.Fatalf("%+v, %v", r, err)
				}
			}
		})
	}
}

func fill(b *testing.B, s *fixture.Site, jobs int) {
	b.Helper()
	ids, end := sortid.NewSource(s.Store.Floor()), s.Now()
	for n := 0; n < jobs; {
		from := n
		err := s.Store.Update(b.Context(), func(tx app.Tx) error {
			for n = from; n < min(from+1000, jobs); n++ {
				at := unit.At(end.Add(-time.Duration(n%29) * 24 * time.Hour))
				j := &app.Job{
					ID: app.JobID(ids.Next(end)), Name: fmt.Sprint("job-", n), Type: fmt.Sprint("type-", n%3), Version: "1", Status: app.Completed,
					Organization: "lab", Email: fmt.Sprintf("user-%d@lab.example", n%10), CreatedAt: at, CompletedAt: at,
					Metrics: &app.Metrics{RunSeconds: 60, CPUSeconds: 59},
				}
				if err := tx.PutJob(j); err != nil {
					return err
				}
			}
			return nil
		})
		must.OK(b, err)
	}
}
