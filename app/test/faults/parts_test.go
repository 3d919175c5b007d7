package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"

	"molrun/app/client"
)

// parts is what the client knows about a file that is sent in parts.
type parts struct {
	link   string // path and query of its uploadUrl
	length int64
	known  bool  // the first request announces the length
	sent   int64 // highest offset up to which any request has sent bytes
	acked  int64 // highest offset that a response has reported as stored
	busy   bool  // a client is sending a part
	late   int   // number of interrupted requests that might still reach the service
}

var errBroken = errors.New("the connection broke")

// broken is a request body that ends early.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

// offset queries how many bytes are stored and whether the file is complete.
func (p *parts) offset(ctx context.Context, base string) (at int64, whole bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, base+p.link, nil)
	if err != nil {
		return 0, false, err
	}
	return sendRequest(r)
}

// part returns a request that sends the bytes between two offsets. If breaks is set, its
// body fails midway.
func (p *parts) part(ctx context.Context, base, text string, from, to int64, breaks bool) (*http.Request, error) {
	p.sent = max(p.sent, to)
	var body io.Reader = strings.NewReader(text[from:to])
	if breaks {
		body = io.MultiReader(strings.NewReader(text[from:from+(to-from)/2]), broken{})
	}
	method := http.MethodPatch
	if from == 0 {
		method = http.MethodPut
	}
	r, err := http.NewRequestWithContext(ctx, method, base+p.link, body)
	if err != nil {
		return nil, err
	}
	r.ContentLength = to - from
	if to == from {
		r.Body = http.NoBody
	}
	set := r.Header.Set
	set("Upload-Complete", map[bool]string{true: "?1", false: "?0"}[to == p.length])
	if p.known {
		set("Upload-Length", strconv.FormatInt(p.length, 10))
	}
	if method == http.MethodPatch {
		set("Content-Type", "application/partial-upload")
		set("Upload-Offset", strconv.FormatInt(from, 10))
	}
	return r, nil
}

// breakBeforeAByte sends the header of a request with a part but no byte of its body, and
// waits until the service abandons the request.
func (p *parts) breakBeforeAByte(base, text string, from int64) error {
	r, err := p.part(context.Background(), base, text, from, from+1, false)
	if err != nil {
		return err
	}
	head, err := httputil.DumpRequestOut(r, false)
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", r.URL.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write(head); err != nil {
		return err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}

// sendRequest sends a request and returns the stored length according to the response.
func sendRequest(r *http.Request) (at int64, whole bool, err error) {
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, false, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, false, err
	}
	if answer.StatusCode >= 300 {
		code := errorCode(text)
		if r.Method == http.MethodHead { // a HEAD response has no body
			code = map[int]string{http.StatusForbidden: "LINK_EXPIRED", http.StatusNotFound: "NOT_FOUND"}[answer.StatusCode]
		}
		return 0, false, &client.Error{Status: answer.StatusCode, Code: code, Message: string(text)}
	}
	at, err = strconv.ParseInt(answer.Header.Get("Upload-Offset"), 10, 64)
	return at, answer.Header.Get("Upload-Complete") == "?1", err
}

// compare records the number of bytes that a response reports as stored. It describes the
// error if that number is wrong.
func (p *parts) compare(at int64) (wrong string) {
	switch {
	case at < p.acked:
		wrong = fmt.Sprintf("%d bytes were stored, and now %d are", p.acked, at)
	case at > p.sent:
		wrong = fmt.Sprintf("%d bytes are stored, and only %d were sent", at, p.sent)
	}
	p.acked = at
	return wrong
}

// sendParts starts to send a file in parts, or continues with one.
func (w *loadClient) sendParts() error {
	fact, err := w.takeParts()
	if err != nil {
		return err
	}
	defer w.ledger.note(func() { fact.parts.busy = false })
	for range 1 + w.rand.IntN(3) {
		to := func(at int64) int64 { return at + w.rand.Int64N(fact.parts.length-at+1) }
		if err := w.sendPart(fact, to, w.rand.IntN(6) == 0); err != nil || fact.sent {
			return err
		}
	}
	return nil
}

// takeParts returns a file that no other client is sending, and marks it busy.
func (w *loadClient) takeParts() (*fileFact, error) {
	var taken *fileFact
	if w.rand.IntN(2) == 0 {
		w.ledger.note(func() {
			if f, ok := pick(w.rand, w.ledger.files, func(f fileFact) bool { return f.parts != nil && !f.sent && !f.parts.busy }); ok {
				taken = w.ledger.files[f.id]
				taken.parts.busy = true
			}
		})
	}
	if taken != nil {
		return taken, nil
	}
	w.files++
	name := fmt.Sprintf("%s-%d-%d-parts.txt", w.name, w.number, w.files)
	var text strings.Builder
	for n := range w.rand.IntN(4000) {
		fmt.Fprintln(&text, name, n) // makes the bytes at every position different
	}
	return w.beginParts(name, text.String(), w.rand.IntN(2) == 0)
}

// beginParts creates an upload for a file that is sent in parts.
func (w *loadClient) beginParts(name, text string, known bool) (*fileFact, error) {
	u, err := w.client.CreateUpload(w.ctx, "", name)
	if err != nil {
		return nil, err
	}
	local := func(url string) string { return "/" + strings.SplitN(url, "/", 4)[3] }
	fact := &fileFact{id: u.FileID, text: text, link: local(u.DownloadURL), parts: &parts{link: local(u.UploadURL), length: int64(len(text)), known: known, busy: true}}
	w.ledger.acknowledge(func() { w.ledger.files[u.FileID] = fact })
	return fact, nil
}

// sendPart sends a part from the offset that the service reports. After the last part it
// completes the upload.
func (w *loadClient) sendPart(fact *fileFact, to func(at int64) int64, breaks bool) error {
	p := fact.parts
	at, whole, err := p.offset(w.ctx, w.base)
	if err != nil {
		return err
	}
	w.stored(fact, at)
	if !whole {
		r, err := p.part(w.ctx, w.base, fact.text, at, to(at), breaks)
		if err != nil {
			return err
		}
		at, whole, err = sendRequest(r)
		if err != nil && p.late > 0 && except(err, "UPLOAD_OFFSET_MISMATCH") == nil {
			p.late-- // the request reached the service after the offset was queried
			return nil
		}
		if breaks {
			p.late++
		}
		if err != nil {
			return err
		}
		w.stored(fact, at)
	}
	if !whole {
		return nil
	}
	w.ledger.acknowledge(func() { fact.sent = true })
	file, err := w.client.CompleteUpload(w.ctx, fact.id, p.length)
	if err != nil {
		return err
	}
	w.ledger.acknowledge(func() { fact.completed = true })
	if file.SHA256 != fact.sha256() {
		w.ledger.faultf("file %s has a different SHA-256 than the parts sent", file.ID)
	}
	return nil
}

// stored records the number of bytes that a response reports as stored.
func (w *loadClient) stored(fact *fileFact, at int64) {
	w.ledger.acknowledge(func() {
		if wrong := fact.parts.compare(at); wrong != "" && len(w.ledger.excused) == 0 {
			w.ledger.faults = append(w.ledger.faults, fmt.Sprintf("the parts of file %s: %s", fact.id, wrong))
		}
	})
}

// finishParts sends the rest of every file that is being sent in parts.
func (s *server) finishParts(l *ledger, v *verdict) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	w := &loadClient{load: load{client: s.client(), ledger: l, base: s.base}, ctx: ctx}
	defer w.client.Close()
	for id, fact := range l.files {
		if fact.parts == nil || fact.sent {
			continue
		}
		err := w.sendPart(fact, func(int64) int64 { return fact.parts.length }, false)
		if except(err, l.excused...) != nil {
			v.lost = append(v.lost, fmt.Sprintf("the parts of file %s: %v", id, err))
		}
	}
}
