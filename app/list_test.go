package app_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/job/listing"
	"molrun/app/test/must"
)

// TestPagesAtOnceShareNoBytes reads pages of two organizations alternately and
// concurrently, so that each page reuses the memory of earlier ones.
func TestPagesAtOnceShareNoBytes(t *testing.T) {
	s := newSite(t)
	callers := []app.Caller{ann, eve}
	for i := range 20 {
		s.submit(callers[i%2], fmt.Sprintf("%s-%02d", callers[i%2].Organization, i), `{}`)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			by := callers[i%2]
			for n := range 100 {
				page, err := s.Lists.Jobs(t.Context(), by, listing.Query{Limit: 1 + n%10})
				if err != nil {
					t.Error(err)
					return
				}
				for _, r := range page.Records {
					if name := decode(t, r).Name; !strings.HasPrefix(name, by.Organization+"-") {
						t.Errorf("%s sees %s", by.Organization, name)
						return
					}
				}
				page.Release()
			}
		})
	}
	all.Wait()
}

func TestPageOfLargeRecordsEndsEarly(t *testing.T) {
	s := newSite(t, `
format = 1
type = "text"
version = "1"
title = "Print a text"
command = ["cat", "{settings_file}"]

[[parameters]]
name = "text"
type = "string"
`)
	large := `{"text":"` + strings.Repeat("x", 17<<16) + `"}`
	must.OK(t, must.Error3(s.Jobs.SubmitBatch(t.Context(), ann, batchSubmissionOf(t, "text", "b", slices.Repeat([]string{large}, 7)...))))
	var pages []int
	for q := (listing.Query{Selection: listing.Selection{Batch: "b"}, Limit: 100}); ; {
		page, err := s.Lists.Jobs(t.Context(), ann, q)
		must.OK(t, err)
		pages = append(pages, len(page.Records))
		if q.StartKey = page.StartKey; q.StartKey == "" {
			break
		}
	}
	must.Equal(t, "records per page", pages, []int{4, 3}) // four exceed 4 MiB
	page, err := s.Lists.Jobs(t.Context(), ann, listing.Query{Limit: 100, Subjobs: true})
	must.OK(t, err)
	if n := len(decode(t, page.Records[0]).Subjobs); n != 6 || !bytes.HasSuffix(page.Records[0], []byte(`"subjobsTruncated":true}`)) {
		t.Errorf("%d of 7 large subjobs are shown, want 6 and subjobsTruncated", n)
	}
}

func TestLinesOfTheQueueHaveTheirOldestJobs(t *testing.T) {
	s := newSite(t)
	lines := func() (seen []string) {
		all, err := s.Runs.Lines(t.Context(), placement.Local, 1)
		must.OK(t, err)
		for _, l := range all {
			seen = append(seen, fmt.Sprint(l.Email, " ", l.Count, " ", len(l.Jobs), " ", s.storedJob(l.Jobs[0].ID).Name))
		}
		return seen
	}
	must.Equal(t, "of nobody", lines(), nil)
	s.submitBatch(ann, "b", slices.Repeat([]string{`{}`}, 120)...)
	must.Equal(t, "of one user", lines(), []string{"ann@lab.example 120 100 b-1"})
	s.submit(bob, "other", `{}`)
	must.Equal(t, "of two", lines(), []string{"ann@lab.example 120 100 b-1", "bob@lab.example 1 1 other"})
}
