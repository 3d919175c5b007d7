package blobs

import (
	"net/http"
	"testing"

	"molrun/app/base/fault"
)

// TestErrorsCarryNoHeadersOfADownload asks for what fails before and after the
// headers of a download are set.
func TestErrorsCarryNoHeadersOfADownload(t *testing.T) {
	f := start(t)
	id := f.stored("0123456789")
	job := f.result(map[string]string{"a": "x"})
	for name, res := range map[string]response{
		"range of an upload":   f.do("GET", f.getLink(id), "", "Range", "bytes=10-"),
		"range of a file":      f.do("GET", f.resultLink(job, 0), "", "Range", "bytes=1-"),
		"range of an archive":  f.do("GET", f.archiveLink(job), "", "Range", "bytes=1000000-"),
		"file that is not":     f.do("GET", f.resultLink(job, 1), ""),
		"result that is not":   f.do("GET", f.archiveLink("none"), ""),
		"nothing uploaded yet": f.do("GET", f.getLink(f.newUpload("text/plain")), ""),
	} {
		if res.status < 400 || res.code() == fault.Code("") {
			t.Errorf("%s: status %d, body %s; want an error", name, res.status, res.body)
		}
		for header := range res.header {
			switch header {
			case "Content-Length", "Content-Range", "Content-Type", "Date":
			default:
				if _, ok := secureHeaders[header]; !ok {
					t.Errorf("%s: %s: %s is left", name, header, res.header.Get(header))
				}
			}
		}
		for header, value := range secureHeaders {
			if res.header.Get(header) != value {
				t.Errorf("%s: %s is %q, want %q", name, header, res.header.Get(header), value)
			}
		}
		if got, want := res.header.Get("Content-Range") != "", res.status == http.StatusRequestedRangeNotSatisfiable; got != want {
			t.Errorf("%s: Content-Range %q with status %d", name, res.header.Get("Content-Range"), res.status)
		}
	}
}
