package edge

import (
	"bytes"
	"net/http"
)

// closeIfFramedTwice closes the connection after a request whose length is ambiguous,
// because a proxy in between might have interpreted it differently: a request with both
// Transfer-Encoding and Content-Length, or with Transfer-Encoding in HTTP/1.0, which does
// not define it (RFC 9112, sections 6.1 and 6.3).
func closeIfFramedTwice(w http.ResponseWriter, r *http.Request) {
	other := "content-length" // net/http removes it if there is a Transfer-Encoding
	switch {
	case !r.ProtoAtLeast(1, 1):
		other = "transfer-encoding" // net/http ignores and removes it
	case len(r.TransferEncoding) == 0:
		return
	}
	c, plain := connOf(r)
	if !plain || c.recent.mentions(other) { // TLS hides the headers, and such requests are rare
		w.Header().Set("Connection", "close")
	}
}

const (
	readAhead = 4 << 10       // how far net/http can have read into the next requests
	maxRecent = 2 * readAhead // how much of a request's headers is checked
)

// recentBytes are the last bytes read from a connection. They include the headers of the
// current request and little before them.
type recentBytes struct {
	kept    []byte
	between bool // one request has ended and the next has not begun
	lost    bool // the headers began before the kept bytes
}

// add records bytes read from the connection. handling says whether a request is being
// handled.
func (b *recentBytes) add(p []byte, handling bool) {
	if len(p) == 0 {
		return
	}
	if b.between && !handling {
		// net/http is reading because the headers are still incomplete, so the part of
		// them read so far contains no empty line.
		b.kept = append(b.kept[:0], b.kept[afterEmptyLine(b.kept):]...)
		b.between, b.lost = false, false
	}
	most := maxRecent
	if handling {
		most = readAhead
	} else if len(b.kept)+len(p) > most {
		b.lost = true
	}
	p = p[max(0, len(p)-most):]
	b.kept = append(b.kept[:0], b.kept[max(0, len(b.kept)+len(p)-most):]...)
	b.kept = append(b.kept, p...)
}

// afterEmptyLine returns the offset after the last empty line, or 0 if there is none.
func afterEmptyLine(p []byte) int {
	end := 0
	for _, line := range []string{"\n\r\n", "\n\n"} {
		if i := bytes.LastIndex(p, []byte(line)); i >= 0 {
			end = max(end, i+len(line))
		}
	}
	return end
}

// mentions reports whether a line begins with the header name, given in lowercase. If it
// can't tell, it returns true.
func (b *recentBytes) mentions(header string) bool {
	return b.lost || bytes.Contains(bytes.ToLower(b.kept), []byte("\n"+header))
}
