// Package respond writes responses: JSON bodies, job records, pages of a listing and
// errors. Only errors.go maps error codes to HTTP statuses. Clip and Redact make client
// text safe for messages and logs.
package respond

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// RequestID is the header with the ID of a request. It is set before any handler runs.
const RequestID = "X-Request-Id"

// JSONType is the Content-Type of all responses except files, logs and documents.
const JSONType = "application/json"

// ProblemType is the Content-Type of an error that a standard defines as a problem
// document.
const ProblemType = "application/problem+json"

// JSON responds with v as JSON on one line. If v cannot be encoded, it writes nothing.
func JSON(w http.ResponseWriter, status int, v any) error {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // keeps links readable; this is never shown as HTML
	if err := enc.Encode(v); err != nil {
		return err
	}
	Body(w, status, JSONType, body.Bytes())
	return nil
}

// Body sends a complete response. A write error means that the client has disconnected,
// which the access log shows.
func Body(w http.ResponseWriter, status int, contentType string, body []byte) {
	_ = writeBody(w, status, contentType, body)
}

func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) error {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, err := w.Write(body)
	return err
}

// Record responds with 200 and a job's record, unchanged.
func Record(w http.ResponseWriter, record json.RawMessage) {
	Body(w, http.StatusOK, JSONType, append(bytes.TrimRight(record, "\n"), '\n'))
}

// Page is one page of a listing.
type Page struct {
	Noun     string            // name of the member that holds the records
	Records  []json.RawMessage // as stored
	StartKey string            // cursor of the next page; "" on the last page
	Statuses json.RawMessage   // counts by status, if requested
	Count    json.RawMessage   // number of records on all pages, if requested
}

// Write responds with 200 and the page. It copies the records without parsing them.
func (p Page) Write(w http.ResponseWriter) {
	size := len(p.Noun) + len(p.StartKey) + len(p.Statuses) + 64
	for _, r := range p.Records {
		size += len(r) + 1
	}
	buffer := pageBuffers.Get().(*[]byte)
	b := append(slices.Grow((*buffer)[:0], size), '{')
	b = append(strconv.AppendQuote(b, p.Noun), ":["...)
	for i, r := range p.Records {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, r...)
	}
	b = append(b, ']')
	if p.StartKey != "" {
		b = append(b, `,"startKey":`...)
		b = strconv.AppendQuote(b, p.StartKey) // cursors are plain ASCII
	}
	if p.Statuses != nil {
		b = append(append(b, `,"statuses":`...), p.Statuses...)
	}
	if p.Count != nil {
		b = append(append(b, `,"count":`...), p.Count...)
	}
	b = append(b, "}\n"...)
	err := writeBody(w, http.StatusOK, JSONType, b)
	if err == nil && cap(b) <= keptBuffer { // after an error, HTTP/2 may still be sending b
		*buffer = b
		pageBuffers.Put(buffer)
	}
}

// keptBuffer is the maximum size of a buffer that is kept for reuse.
const keptBuffer = 256 << 10

var pageBuffers = sync.Pool{New: func() any { return new([]byte) }}
