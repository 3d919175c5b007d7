package retention_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/job/retention"
	"molrun/app/job/upload"
	"molrun/app/test/must"
)

// TestPartsThatDoNotGoOnAreDropped starts two resumable uploads and resumes one of them.
func TestPartsThatDoNotGoOnAreDropped(t *testing.T) {
	s := newSite(t, retention.Options{Partial: 10 * time.Hour})
	ann := app.Caller{Organization: "lab", Email: "ann@lab.example"}
	length := int64(1000)
	begin := func(name string) (app.UploadID, *app.Partial) {
		t.Helper()
		g, err := s.Files.Create(t.Context(), ann, upload.Request{Filename: name})
		must.OK(t, err)
		generation, _, err := s.Files.BeginUpload(t.Context(), g.Upload.ID, 0)
		must.OK(t, err)
		p := &app.Partial{Generation: generation, Length: &length}
		must.OK(t, s.Files.BeginPartial(t.Context(), g.Upload.ID, p))
		return g.Upload.ID, p
	}
	stays, going := begin("stays")
	stops, _ := begin("stops")
	s.retainFor(8 * time.Hour)
	going.Offset = 10
	must.OK(t, s.Files.SavePartial(t.Context(), stays, going))
	must.Equal(t, "deleted", s.retainFor(3*time.Hour), []string{" inputs/stops (partial)"})
	check := func(id app.UploadID, want bool) {
		t.Helper()
		u, err := s.Files.Upload(t.Context(), id)
		must.OK(t, err)
		must.Equal(t, u.Filename+" arrives in parts", u.Partial != nil, want)
	}
	check(stays, true)
	check(stops, false)
	used := func() (bytes int64) {
		must.OK(t, s.Store.View(t.Context(), func(tx app.Tx) error {
			u, err := tx.Stored("lab", "")
			bytes = u.Bytes
			return err
		}))
		return bytes
	}
	must.Equal(t, "bytes count", used(), length)
	s.retainFor(8 * time.Hour)
	check(stays, false)
	must.Equal(t, "bytes still count", used(), 0)
	if err := s.Files.SavePartial(t.Context(), stays, going); err == nil {
		t.Error("a dropped upload is resumed")
	}
	names, err := os.ReadDir(filepath.Join(s.Data, "uploads", "partial"))
	if err != nil || len(names) > 0 {
		t.Errorf("left: %v, %v", names, err)
	}
}
