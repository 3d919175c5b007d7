package web

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/rs/zerolog"

	"molrun/app"
)

const jsonType = "application/json"

// reply answers 200 with v as JSON.
func reply(c *gin.Context, v any) { writeJSON(c.Writer, http.StatusOK, v) }

// writeJSON answers with v as JSON, on a line of its own.
func writeJSON(w http.ResponseWriter, status int, v any) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // links stay readable; nothing shows this as HTML
	if err := enc.Encode(v); err != nil {
		panic(err) // a type of this package that is not JSON: a mistake here
	}
	writeBody(w, status, jsonType, body.Bytes())
}

// writeBody sends a whole answer. An error of writing means that the client
// is gone, which the access log tells.
func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// replyRecord answers 200 with a job's record, as it is.
func replyRecord(c *gin.Context, record json.RawMessage) {
	writeBody(c.Writer, http.StatusOK, jsonType, append(bytes.TrimRight(record, "\n"), '\n'))
}

// with gives a record with one more member at its end.
func with(record json.RawMessage, member string, value bool) json.RawMessage {
	open := bytes.TrimRight(bytes.TrimSuffix(bytes.TrimRight(record, " \n"), []byte("}")), " \n")
	out := append(make([]byte, 0, len(open)+len(member)+12), open...)
	if !bytes.HasSuffix(open, []byte("{")) {
		out = append(out, ',')
	}
	out = append(strconv.AppendQuote(out, member), ':')
	return append(strconv.AppendBool(out, value), '}')
}

// replyPage answers 200 with a page of a listing: records as they are stored
// and, where there is more, the cursor.
func replyPage(c *gin.Context, noun string, records []json.RawMessage, startKey string, statuses *app.Counts) {
	size := len(noun) + len(startKey) + 160
	for _, r := range records {
		size += len(r) + 1
	}
	b := append(make([]byte, 0, size), '{')
	b = append(strconv.AppendQuote(b, noun), ":["...)
	for i, r := range records {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, r...)
	}
	b = append(b, ']')
	if startKey != "" {
		b = append(b, `,"startKey":`...)
		b = strconv.AppendQuote(b, startKey) // cursors are plain ASCII
	}
	if statuses != nil {
		counts, _ := json.Marshal(statuses) // of numbers, which can't fail
		b = append(append(b, `,"statuses":`...), counts...)
	}
	writeBody(c.Writer, http.StatusOK, jsonType, append(b, "}\n"...))
}

// logger gives the request's logger.
func logger(c *gin.Context) *zerolog.Logger { return zerolog.Ctx(c.Request.Context()) }
