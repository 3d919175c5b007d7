package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"time"

	"molrun/app"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
)

// Labels and uploads of seeded jobs.
const (
	seedTag    = "project:folding" // of every tenth job
	seedUpload = 100               // jobs per upload
)

// newerFilters returns filters that were added to the API later, each with an unfiltered
// page of the same length. Times are within the seeded years.
func newerFilters(jobs int) []struct{ name, plain, path string } {
	const page, files = firstPage, "/files?limit=50&organization=true"
	past := func(years float64) string {
		return time.Now().Add(-time.Duration(years * 365 * 24 * float64(time.Hour))).UTC().Format(time.DateOnly)
	}
	return []struct{ name, plain, path string }{
		{"three statuses", page, page + "&status=QUEUED&status=RUNNING&status=COMPLETED"},
		{"tag", page, page + "&tag=" + seedTag},
		{"tag and user", page, page + "&jobEmail=" + url.QueryEscape(seedUser(0)) + "&tag=" + seedTag},
		{"since and until", page, page + "&since=" + past(2) + "&until=" + past(1)},
		{"oldest first", page, page + "&order=asc"},
		{"sort=completedAt", page, page + "&sort=completedAt"},
		{"the same of a user", page, page + "&sort=completedAt&jobEmail=" + url.QueryEscape(seedUser(0))},
		{"search for many", page, page + "&search=seeded"},
		{"search for one in vain", page, page + "&search=absent"},
		{"count=1", page, page + "&count=1"},
		{"count=1 of a user", page, page + "&count=1&jobEmail=" + url.QueryEscape(seedUser(0))},
		{"count=1 of a tag", page, page + "&count=1&tag=" + seedTag},
		{"summary", page, "/jobs/summary?organization=true"},
		{"summary of a user", page, "/jobs/summary?jobEmail=" + url.QueryEscape(seedUser(0))},
		{"summary of a tag", page, "/jobs/summary?organization=true&tag=" + seedTag},
		{"files by digest", files, files + "&sha256=" + seedDigest(jobs/2/seedUpload)},
	}
}

// measureLater compares each newer filter with an unfiltered page.
func (g *growing) measureLater(ctx context.Context) (figures, error) {
	f := figures{}
	for _, one := range newerFilters(g.jobs) {
		plain, filtered, err := alternate(ctx, g.address, g.duration/4, g.get(one.plain), g.get(one.path))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}
		f[one.name] = filtered.quantile(.5) / plain.quantile(.5)
	}
	return f, nil
}

// upload returns the upload that accompanies j, the job just created. It is nil for most
// jobs.
func (s *seeding) upload(j *app.Job) *app.Upload {
	if s.made%seedUpload != 0 {
		return nil
	}
	id, _ := sortid.Parse(string(j.ID)) // cannot fail: the job ID was made from a sortid.ID
	id[sortid.Size-1] ^= 1
	return &app.Upload{
		ID: app.UploadID(id.String()), Organization: organization, Email: j.Email, Folder: "inputs",
		Filename: fmt.Sprintf("seeded-%d.pdb", s.made/seedUpload), ContentType: "text/plain",
		CreatedAt: j.CreatedAt, CompletedAt: unit.At(j.CreatedAt.Time), Generation: 1, Size: 1,
		SHA256: seedDigest(s.made / seedUpload),
	}
}

func seedDigest(n int) string {
	sum := sha256.Sum256(fmt.Append(nil, n))
	return hex.EncodeToString(sum[:])
}
