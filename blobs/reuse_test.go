package blobs

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"

	"molrun/app/test/must"
)

// TestConnectionOutlivesDownloads fetches an archive, a file and an upload, whole and
// in part, over one connection.
func TestConnectionOutlivesDownloads(t *testing.T) {
	f := start(t)
	job := f.result(someResult)
	for i, link := range []string{
		f.archiveLink(job), f.archiveLink(job),
		f.resultLink(job, 0), f.getLink(f.stored("0123456789")), f.archiveLink(job),
	} {
		for _, ranges := range []string{"", "bytes=0-3"} {
			reused := false
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }})
			r, err := http.NewRequestWithContext(ctx, "GET", link, nil)
			must.OK(t, err)
			r.Header.Set("Range", ranges)
			res, err := f.server.Client().Do(r)
			must.OK(t, err)
			if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode/100 != 2 {
				t.Errorf("%d, range %q: status %d, %v", i, ranges, res.StatusCode, err)
			}
			res.Body.Close()
			if first := i == 0 && ranges == ""; reused == first {
				t.Errorf("%d, range %q: a connection that was used before: %v", i, ranges, reused)
			}
		}
	}
}
