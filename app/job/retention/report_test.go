package retention_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"molrun/app/job/quota"
	"molrun/app/job/retention"
	"molrun/app/test/must"
)

func TestStorageReportAddsUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, retention.Options{Quota: func(string, string) quota.Quota { return quota.Quota{Bytes: 1 << 20} }})
	s.Upload(ann, "in.txt", "hello")
	s.completed(ann, "old", `{}`, 100)
	s.Advance(40 * day)
	s.completed(bob, "new", `{}`, 3000)
	s.failed(bob, "failed")
	s.Submit(ann, "queued", `{}`)
	s.completed(eve, "foreign", `{}`, 7)
	for by, want := range map[retention.ReportBy][]retention.UsageRow{
		retention.ByOrganization: {
			{Organization: "lab", Jobs: 4, Queued: 1, Files: 1, ResultBytes: 3100, UploadBytes: 5, QuotaBytes: 1 << 20},
			{Organization: "other", Jobs: 1, ResultBytes: 7, QuotaBytes: 1 << 20},
		},
		retention.ByUser: {
			{Organization: "lab", User: bob.Email, Jobs: 2, ResultBytes: 3000},
			{Organization: "lab", User: ann.Email, Jobs: 2, Queued: 1, Files: 1, ResultBytes: 100, UploadBytes: 5},
			{Organization: "other", User: eve.Email, Jobs: 1, ResultBytes: 7},
		},
		retention.ByAlgorithm: {
			{Algorithm: "echo", Jobs: 5, Queued: 1, ResultBytes: 3107},
			{Files: 1, UploadBytes: 5},
		},
		retention.ByAge: {
			{Age: "under 7 days", Jobs: 4, Queued: 1, ResultBytes: 3007},
			{Age: "30 to 89 days", Jobs: 1, Files: 1, ResultBytes: 100, UploadBytes: 5},
		},
	} {
		report, err := s.keeper.Report(t.Context(), "", by)
		must.OK(t, err)
		if diff := cmp.Diff(want, report.Rows, cmpopts.IgnoreUnexported(retention.UsageRow{})); diff != "" {
			t.Errorf("by %s (-want +got):\n%s", by, diff)
		}
		if d := report.Disk; d.Size <= 0 || d.Free <= 0 || d.Reserve <= 0 {
			t.Errorf("disk %+v", d)
		}
	}
}
