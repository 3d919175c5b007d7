package blobs

import (
	"fmt"
	"mime"
	"net/http"

	"molrun/app"
	"molrun/app/base/fault"
)

// partialType is the media type of a part appended by PATCH.
const partialType = "application/partial-upload"

// part describes the bytes of a request.
type part struct {
	offset int64 // position in the file
	size   int64 // number of bytes, -1 if unknown until the end
	length int64 // length of the whole file, -1 if unknown
	last   bool  // this part completes the file
	begin  bool  // the file starts over, discarding earlier parts
	query  bool  // no bytes, only a query of how many have arrived
	ranged bool  // uses Content-Range, which has its own responses

	content  *expectation      // digests of these bytes
	expected map[string][]byte // digests of the whole file, nil if unknown
}

// isResumable reports whether a request with an upload link belongs to a resumable upload.
// All others are plain PUTs.
func isResumable(r *http.Request) bool {
	_, told := booleanField(r.Header, "Upload-Complete")
	return r.Method != http.MethodPut || told || len(r.Header.Values("Content-Range")) > 0
}

// readPart parses the header fields of a request that carries bytes.
func readPart(r *http.Request, l app.Link) (p part, err error) {
	switch {
	case r.Method == http.MethodPatch:
		p, err = readAppend(r)
	case len(r.Header.Values("Content-Range")) > 0:
		p, err = readRange(r)
	default:
		p, err = readCreation(r)
	}
	if err == nil && r.Method == http.MethodPut {
		err = checkPut(r, l.ContentType)
	}
	if err == nil {
		err = checkEncoding(r)
	}
	if err == nil {
		p.content, err = expect(r.Header, "Content-Digest")
	}
	if err != nil {
		return p, err
	}
	if p.expected, err = digestField(r.Header, "Repr-Digest"); err != nil {
		return p, headerFault("Repr-Digest", err.Error())
	}
	return p, p.checkLength()
}

// readCreation parses a PUT that starts a file, with either all its bytes or the first
// part.
func readCreation(r *http.Request) (part, error) {
	complete, _ := booleanField(r.Header, "Upload-Complete")
	return part{size: r.ContentLength, length: lengthOf(r), last: complete, begin: true}, nil
}

// readAppend parses a PATCH.
func readAppend(r *http.Request) (part, error) {
	if given, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || given != partialType {
		return part{}, fault.Errorf(fault.UnsupportedMediaType, "Send the bytes of a part with the Content-Type %s.", partialType)
	}
	var faults []fault.Field
	missing := func(name, message string) {
		faults = append(faults, fault.Field{Loc: []any{"header", name}, Msg: message, Type: "missing"})
	}
	offset, ok := integerField(r.Header, "Upload-Offset")
	if !ok {
		missing("Upload-Offset", "give the number of bytes received before these, as returned by HEAD")
	}
	complete, ok := booleanField(r.Header, "Upload-Complete")
	if !ok {
		missing("Upload-Complete", "give ?1 if the file ends with these bytes, ?0 if more will follow")
	}
	return part{offset: offset, size: r.ContentLength, length: lengthOf(r), last: complete}, fault.List(faults...)
}

// lengthOf returns Upload-Length, or -1 if it is absent.
func lengthOf(r *http.Request) int64 {
	if n, ok := integerField(r.Header, "Upload-Length"); ok {
		return n
	}
	return -1
}

// readRange parses a PUT with a Content-Range.
func readRange(r *http.Request) (part, error) {
	lines := r.Header.Values("Content-Range")
	if len(lines) > 1 {
		return part{}, headerFault("Content-Range", "give it once")
	}
	given, err := parseContentRange(lines[0])
	if err != nil {
		return part{}, headerFault("Content-Range", err.Error())
	}
	p := part{offset: given.First, size: given.Size(), length: given.Total, query: given.IsQuery(), ranged: true}
	p.last = !p.query && given.Last+1 == given.Total
	if r.ContentLength >= 0 && r.ContentLength != p.size {
		return p, headerFault("Content-Range", "the range does not match the length of the body")
	}
	if complete, told := booleanField(r.Header, "Upload-Complete"); told && complete != p.last && !p.query {
		return p, lengthMismatch("Upload-Complete and Content-Range disagree on whether the file ends with these bytes.")
	}
	if length := lengthOf(r); length >= 0 && given.Total >= 0 && length != given.Total {
		return p, lengthMismatch("Upload-Length and Content-Range give the file different lengths.")
	}
	return p, nil
}

// checkLength rejects a length that contradicts the part, and derives the length from the
// last part.
func (p *part) checkLength() error {
	end := p.offset + p.size
	switch {
	case p.size < 0 || p.query:
		return nil
	case p.last && p.length < 0:
		p.length = end
	case p.last && p.length != end:
		return lengthMismatch("Upload-Complete says that the file ends with these bytes, but that contradicts Upload-Length.")
	case p.length >= 0 && end > p.length:
		return lengthMismatch("These bytes exceed the declared length of the file.")
	}
	return nil
}

// lengthMismatch returns the error for inconsistent lengths that the draft specifies.
func lengthMismatch(message string) error {
	return &fault.Error{Code: fault.UploadLength, Message: message, Problem: map[string]any{
		"type":  "https://iana.org/assignments/http-problem-types#inconsistent-upload-length",
		"title": "inconsistent length values for upload",
	}}
}

// offsetMismatch returns the error for a part that does not start where the previous one
// ended.
func offsetMismatch(expected, provided int64) error {
	return &fault.Error{
		Code: fault.UploadOffset, Message: fmt.Sprintf("%d bytes are stored, so the next part must start at %[1]d, not at %d.", expected, provided),
		Problem: map[string]any{
			"type":            "https://iana.org/assignments/http-problem-types#mismatching-upload-offset",
			"title":           "offset from request does not match offset of resource",
			"expected-offset": expected, "provided-offset": provided,
		},
	}
}
