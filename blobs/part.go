package blobs

import (
	"fmt"
	"mime"
	"net/http"

	"molrun/app"
	"molrun/app/base/fault"
)

// partialType is the media type of a part that PATCH adds.
const partialType = "application/partial-upload"

// part is what a request says of the bytes that it carries.
type part struct {
	offset int64 // where they begin
	size   int64 // how many they are, -1 if that shows at their end
	length int64 // of the whole file, -1 if unknown
	last   bool  // the file ends with them
	begin  bool  // the file starts over, even if some of it has arrived
	asks   bool  // it carries no bytes, and asks how many have arrived
	ranged bool  // Content-Range says so, and wants answers of its own

	content  *expectation      // of these bytes
	expected map[string][]byte // digests of the whole file, nil if unknown
}

// inParts reports whether a request with an upload link is about a file that arrives in
// parts. All others are plain PUTs.
func inParts(r *http.Request) bool {
	_, told := booleanField(r.Header, "Upload-Complete")
	return r.Method != http.MethodPut || told || len(r.Header.Values("Content-Range")) > 0
}

// readPart reads the header fields of a request that carries bytes.
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

// readCreation reads a PUT that begins a file: all of it, or its first part.
func readCreation(r *http.Request) (part, error) {
	complete, _ := booleanField(r.Header, "Upload-Complete")
	return part{size: r.ContentLength, length: lengthOf(r), last: complete, begin: true}, nil
}

// readAppend reads a PATCH.
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

// lengthOf returns Upload-Length, -1 if it is absent.
func lengthOf(r *http.Request) int64 {
	if n, ok := integerField(r.Header, "Upload-Length"); ok {
		return n
	}
	return -1
}

// readRange reads a PUT whose Content-Range tells which bytes it carries.
func readRange(r *http.Request) (part, error) {
	lines := r.Header.Values("Content-Range")
	if len(lines) > 1 {
		return part{}, headerFault("Content-Range", "give it once")
	}
	given, err := parseContentRange(lines[0])
	if err != nil {
		return part{}, headerFault("Content-Range", err.Error())
	}
	p := part{offset: given.First, size: given.Size(), length: given.Total, asks: given.Asks(), ranged: true}
	p.last = !p.asks && given.Last+1 == given.Total
	if r.ContentLength >= 0 && r.ContentLength != p.size {
		return p, headerFault("Content-Range", "give the range of the bytes in the body: their number differs")
	}
	if complete, told := booleanField(r.Header, "Upload-Complete"); told && complete != p.last && !p.asks {
		return p, lengthMismatch("Upload-Complete and Content-Range disagree on whether the file ends with these bytes.")
	}
	if length := lengthOf(r); length >= 0 && given.Total >= 0 && length != given.Total {
		return p, lengthMismatch("Upload-Length and Content-Range give the file different lengths.")
	}
	return p, nil
}

// checkLength refuses a length that the part contradicts, and derives it from the last
// part.
func (p *part) checkLength() error {
	end := p.offset + p.size
	switch {
	case p.size < 0 || p.asks:
		return nil
	case p.last && p.length < 0:
		p.length = end
	case p.last && p.length != end:
		return lengthMismatch("The file does not end with these bytes, as Upload-Complete says, if it has the length that Upload-Length gives.")
	case p.length >= 0 && end > p.length:
		return lengthMismatch("These bytes go beyond the length that the request gives for the file.")
	}
	return nil
}

// lengthMismatch returns the error of lengths that disagree, as the draft wants it.
func lengthMismatch(message string) error {
	return &fault.Error{Code: fault.UploadLength, Message: message, Problem: map[string]any{
		"type":  "https://iana.org/assignments/http-problem-types#inconsistent-upload-length",
		"title": "inconsistent length values for upload",
	}}
}

// offsetMismatch returns the error of a part that does not begin where the one before
// ended.
func offsetMismatch(expected, provided int64) error {
	return &fault.Error{
		Code: fault.UploadOffset, Message: fmt.Sprintf("%d bytes are stored, so the next part begins at %[1]d, not at %d.", expected, provided),
		Problem: map[string]any{
			"type":            "https://iana.org/assignments/http-problem-types#mismatching-upload-offset",
			"title":           "offset from request does not match offset of resource",
			"expected-offset": expected, "provided-offset": provided,
		},
	}
}
