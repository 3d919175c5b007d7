package blobs

import (
	"fmt"
	"maps"
	"testing"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// TestErrorsCarryNoHeadersOfADownload sends requests that fail before and after the
// headers of a download are set.
func TestErrorsCarryNoHeadersOfADownload(t *testing.T) {
	f := start(t)
	job, upload := f.result(map[string]string{"a": "x"}), f.getLink(f.stored("0123456789"))
	size := f.do("HEAD", f.archiveLink(job), "").header.Get("Content-Length")
	for _, tt := range []struct {
		link, ranges string
		status       int
		code         fault.Code
		size         string
	}{
		{upload, "bytes=10-", 416, fault.RangeInvalid, "10"},
		{upload, "bytes=4-2", 416, fault.RangeInvalid, "10"},
		{upload, "bytes=-0", 416, fault.RangeInvalid, "10"},
		{upload, "bytes= -00 , 20-", 416, fault.RangeInvalid, "10"},
		{upload, "lines=1-2", 416, fault.RangeInvalid, "10"},
		{f.resultLink(job, 0), "bytes=1-", 416, fault.RangeInvalid, "1"},
		{f.archiveLink(job), "bytes=1000000-", 416, fault.RangeInvalid, size},
		{f.resultLink(job, 1), "", 403, fault.LinkInvalid, ""},
		{f.archiveLink(app.JobID(f.id())), "", 404, fault.NotFound, ""},
		{f.getLink(f.newUpload("text/plain")), "", 409, fault.UploadNotReceived, ""},
	} {
		res := f.do("GET", tt.link, "", "Range", tt.ranges)
		res.want(t, tt.status, tt.code)
		want := maps.Clone(secureHeaders)
		if tt.size != "" {
			want["Content-Range"] = "bytes */" + tt.size
		}
		got := map[string]string{}
		for header := range res.header {
			if header != "Content-Length" && header != "Content-Type" && header != "Date" {
				got[header] = res.header.Get(header)
			}
		}
		must.Equal(t, fmt.Sprintf("headers of %d, range %q", tt.status, tt.ranges), got, want)
	}
}
