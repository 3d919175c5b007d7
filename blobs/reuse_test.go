package blobs

import (
	"net/http/httptrace"
	"testing"
)

// TestConnectionOutlivesDownloads fetches an archive, a file and an upload, completely
// and in part, over one connection.
func TestConnectionOutlivesDownloads(t *testing.T) {
	f := start(t)
	job := f.result(someResult)
	for i, link := range []string{
		f.archiveLink(job), f.archiveLink(job),
		f.resultLink(job, 0), f.getLink(f.stored("0123456789")), f.archiveLink(job),
	} {
		for _, ranges := range []string{"", "bytes=0-3"} {
			reused := false
			trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }}
			if res := f.traced(trace, "GET", link, nil, "Range", ranges); res.status/100 != 2 || res.err != nil {
				t.Errorf("%d, range %q: status %d, %v", i, ranges, res.status, res.err)
			}
			if first := i == 0 && ranges == ""; reused == first {
				t.Errorf("%d, range %q: a connection that was used before: %v", i, ranges, reused)
			}
		}
	}
}
