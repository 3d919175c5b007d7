package app_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"molrun/app"
	"molrun/app/algorithm/fanout"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// fanOut returns a batch of echo jobs with a fan-out request.
func fanOut(t *testing.T, name, text string) app.BatchSubmission {
	t.Helper()
	body := parseJSON(t, fmt.Sprintf(`{"batchName":%q,"type":"echo","fanOut":%s}`, name, text))
	request, faults := fanout.ReadRequest(body.Member("fanOut"))
	if faults != nil {
		t.Fatal(faults)
	}
	return app.BatchSubmission{Name: name, Type: "echo", FanOut: &request, Body: body}
}

func TestFileDeletedDuringAFanOut(t *testing.T) {
	s := newSite(t)
	u := s.Upload(ann, "a.txt", "A")
	service := s.WithOptions(&interposedStore{s.Store, func() { must.OK(t, s.Files.Delete(t.Context(), ann, string(u.ID))) }}, app.Options{}, echoFile)
	must.Equal(t, "faults", faultLocations(t, must.Error3(service.Jobs.SubmitBatch(t.Context(), ann, fanOut(t, "b", `{"each":{"input":"folder:inputs/*"}}`)))), []string{"[body]"})

	table := s.Upload(ann, "t.csv", "steps\n1\n")
	must.OK(t, os.Remove(s.Blobs.UploadPath(table.ID, table.Generation)))
	must.Equal(t, "faults of a table without bytes", faultLocations(t, must.Error3(s.Jobs.SubmitBatch(t.Context(), ann, fanOut(t, "b", `{"each":{"*":"csv:inputs/t.csv"}}`)))), []string{"[body fanOut each *]"})
}

func TestTooLargeSourcesAreRefused(t *testing.T) {
	s := newSite(t)
	s.Upload(ann, "a.csv", "steps\n1"+strings.Repeat(" ", 20<<20))
	s.Upload(ann, "b.csv", "input\ninputs/x.txt"+strings.Repeat(" ", 13<<20))
	must.Equal(t, "faults of 33 MiB", faultLocations(t, must.Error3(s.Jobs.SubmitBatch(t.Context(), ann, fanOut(t, "b", `{"each":{"steps":"csv:inputs/a.csv","input":"csv:inputs/b.csv"}}`)))), []string{"[body fanOut each steps]"})
	_, created, err := s.Jobs.SubmitBatch(t.Context(), ann, fanOut(t, "b", `{"each":{"steps":"csv:inputs/a.csv"}}`))
	if err != nil || !created {
		t.Errorf("20 MiB: created %v, %v", created, err)
	}
}

// TestExpansionsGiveTheirMemoryBack runs expansions one after the other, some of which
// fail. Together they would exceed the memory limit.
func TestExpansionsGiveTheirMemoryBack(t *testing.T) {
	s := newSite(t)
	s.Upload(ann, "a.csv", "steps\n1"+strings.Repeat(" ", 31<<10))
	service := s.WithOptions(s.Store, app.Options{MaxExpandingBytes: 192 << 10}, echoFile)
	for i := range 16 {
		source := []string{"a", "none"}[i%2]
		_, _, err := service.Jobs.SubmitBatch(t.Context(), ann, fanOut(t, fmt.Sprint("b", i), `{"each":{"steps":"csv:inputs/a.csv","input":"csv:inputs/`+source+`.csv"}}`))
		if fault.CodeOf(err) != fault.Invalid {
			t.Fatalf("expansion %d: %v", i, err)
		}
	}
	_, created, err := service.Jobs.SubmitBatch(t.Context(), ann, fanOut(t, "b", `{"each":{"*":"csv:inputs/a.csv"}}`))
	if err != nil || !created {
		t.Errorf("created %v, %v", created, err)
	}
}

// TestLargeExpansionsAtOnceAreBounded holds one expansion within its transaction while
// others start.
func TestLargeExpansionsAtOnceAreBounded(t *testing.T) {
	s := newSite(t)
	s.Upload(ann, "a.csv", "steps\n1"+strings.Repeat(" ", 31<<10))
	held := &holding{Store: s.Store, entered: make(chan struct{}), release: make(chan struct{})}
	service := s.WithOptions(held, app.Options{MaxExpandingBytes: 192 << 10}, echoFile)
	results := make(chan error, 6)
	for i := range 6 {
		go func() {
			_, _, err := service.Jobs.SubmitBatch(context.Background(), ann, fanOut(t, fmt.Sprint("b", i), `{"each":{"*":"csv:inputs/a.csv"}}`))
			results <- err
		}()
		<-held.entered
	}
	wantCode(t, "the seventh at once", must.Error3(service.Jobs.SubmitBatch(t.Context(), ann, fanOut(t, "late", `{"each":{"*":"csv:inputs/a.csv"}}`))), fault.Unavailable)
	close(held.release)
	for range 6 {
		must.OK(t, <-results)
	}
	go func() { <-held.entered }()
	must.OK(t, must.Error3(service.Jobs.SubmitBatch(t.Context(), ann, fanOut(t, "late", `{"each":{"*":"csv:inputs/a.csv"}}`))))
}

// holding is a store whose updates block until they are released.
type holding struct {
	app.Store
	entered, release chan struct{}
}

func (h *holding) Update(ctx context.Context, fn func(app.Tx) error) error {
	h.entered <- struct{}{}
	<-h.release
	return h.Store.Update(ctx, fn)
}

func TestFolderWithManyUploadsOfOneName(t *testing.T) {
	s := newSite(t)
	for range 3 {
		s.Upload(ann, "a.txt", "A")
	}
	s.Upload(bob, "b.txt", "B")
	completed := s.Upload(bob, "c.txt", "C").CompletedAt
	must.OK(t, s.Store.Update(t.Context(), func(tx app.Tx) error {
		for i := range 1500 {
			err := tx.PutUpload(&app.Upload{
				ID: app.UploadID(fmt.Sprintf("01K%023d", i)), Organization: ann.Organization, Email: ann.Email,
				Folder: "inputs", Filename: fmt.Sprintf("x%d.txt", i), CompletedAt: completed, Generation: 1,
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	rec, _, err := s.Jobs.SubmitBatch(t.Context(), ann, fanOut(t, "b", `{"each":{"input":"folder:inputs/*"}}`))
	must.OK(t, err)
	must.Equal(t, "rows", decode(t, rec).Counts.Queued, 1501)
}
