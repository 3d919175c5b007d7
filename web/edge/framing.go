package edge

import (
	"bytes"
	"net/http"
)

// closeIfFramedTwice closes the connection after a request that says in two ways
// where it ends, because a proxy in between may have believed the other one: with
// a Transfer-Encoding and a Content-Length, or with a Transfer-Encoding in HTTP/1.0,
// which has none (RFC 9112, sections 6.1 and 6.3).
func closeIfFramedTwice(w http.ResponseWriter, r *http.Request) {
	other := "content-length" // net/http removes it beside a Transfer-Encoding
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
	readAhead  = 4 << 10       // what net/http may have read of the next requests
	mostRecent = 2 * readAhead // so much is looked at of a request's headers
)

// recentBytes are the last bytes read from a connection. They include the
// headers of the current request, and little before them.
type recentBytes struct {
	kept    []byte
	between bool // a request has ended and no other has begun
	lost    bool // the headers began before what is kept
}

// add adds bytes that were read, while the handler of a request runs or before.
func (b *recentBytes) add(p []byte, handling bool) {
	if len(p) == 0 {
		return
	}
	if b.between && !handling {
		// net/http reads because it has no whole headers yet. What it has of
		// them holds no empty line.
		b.kept = append(b.kept[:0], b.kept[afterEmptyLine(b.kept):]...)
		b.between, b.lost = false, false
	}
	most := mostRecent
	if handling {
		most = readAhead
	} else if len(b.kept)+len(p) > most {
		b.lost = true
	}
	p = p[max(0, len(p)-most):]
	b.kept = append(b.kept[:0], b.kept[max(0, len(b.kept)+len(p)-most):]...)
	b.kept = append(b.kept, p...)
}

// afterEmptyLine returns where the last empty line ends, 0 if there is none.
func afterEmptyLine(p []byte) int {
	end := 0
	for _, line := range []string{"\n\r\n", "\n\n"} {
		if i := bytes.LastIndex(p, []byte(line)); i >= 0 {
			end = max(end, i+len(line))
		}
	}
	return end
}

// mentions reports whether a line begins with the name of a header, in lower
// case. If that is unknown, it is true.
func (b *recentBytes) mentions(header string) bool {
	return b.lost || bytes.Contains(bytes.ToLower(b.kept), []byte("\n"+header))
}
