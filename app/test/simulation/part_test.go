package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/upload"
)

// partialFor is how long an incomplete file sent in parts is kept after the last bytes
// arrived.
const partialFor = 15 * time.Minute

// errBroken is the error that a client gets when its connection breaks.
var errBroken = errors.New("the connection broke")

// sending is a file that a user sends in parts.
type sending struct {
	file
	by    app.Caller
	url   string
	told  int // number of bytes that the server has reported as stored
	sent  int // number of bytes that the client has sent
	lost  int // number of times that its bytes were deleted, by a user or because of their age
	using int // number of pending requests

	touched time.Time // when anything other than its own requests last changed it
	stale   bool      // the client needs a new link
}

// part is one request for a file that is being sent in parts.
type part struct {
	of     *sending
	verb   string // begin, go on, abandon
	bytes  int    // maximum number of bytes it carries
	plain  bool   // the request is an ordinary PUT of the whole file
	length bool   // the request announces the file's length
	breaks bool   // the connection breaks after the bytes
	renew  bool   // the client first requests a new link

	told, lost int  // values of the file when the request was sent
	alone      bool // no other request was pending
	head       int  // number of bytes that the server reported as stored at first
	asked      bool // head is known
	here       int  // number of bytes now stored; -1 if not in the response
	whole      bool // the file is complete
}

// sendPart has a user begin to send a file in parts, continue one, or abandon it.
func (s *simulation) sendPart() {
	s.up()
	if s.process == nil {
		return
	}
	p := &part{verb: "begin", here: -1}
	open := slices.DeleteFunc(slices.Clone(s.sendings), func(f *sending) bool {
		u := s.uploads[f.id]
		return f.url == "" || u != nil && u.Completed() && s.rng.IntN(8) > 0 || u == nil && s.rng.IntN(8) > 0
	})
	if len(open) > 0 && s.rng.IntN(4) > 0 {
		p.of, p.verb = open[s.rng.IntN(len(open))], []string{"go on", "go on", "go on", "go on", "go on", "begin", "abandon"}[s.rng.IntN(7)]
	}
	if p.of == nil {
		p.of = s.newSending()
	}
	p.bytes = s.rng.IntN(len(p.of.text) + 1)
	if s.rng.IntN(3) == 0 {
		p.bytes = len(p.of.text)
	}
	p.plain = p.verb == "begin" && s.rng.IntN(2) == 0
	if p.plain {
		p.bytes = len(p.of.text)
	}
	p.length = s.rng.IntN(2) == 0
	p.breaks, p.renew = s.rng.IntN(3) == 0, p.of.stale || s.rng.IntN(4) == 0
	p.told, p.lost, p.alone = p.of.told, p.of.lost, p.of.using == 0
	p.of.using++
	s.send(&request{label: label{verb: "part"}, by: p.of.by, name: p.of.name, part: p})
}

// recordLoss records that a partial upload was deleted, by a user or because of its age.
func (f *sending) recordLoss() {
	f.lost++
	f.told = 0
}

func (s *simulation) newSending() *sending {
	f := &sending{file: *s.randomFile(), by: users[s.rng.IntN(len(users))]}
	s.sendings = append(s.sendings, f)
	return f
}

// connection is the client's side of a connection.
type connection struct {
	*httptest.ResponseRecorder
	failed error
	cut    chan struct{} // closed when the server stops reading
}

func (c *connection) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && t.Year() < 1980 {
		select {
		case <-c.cut:
		default:
			close(c.cut)
		}
	}
	return nil
}

func (c *connection) SetWriteDeadline(time.Time) error { return nil }

// failTo passes the error of a request on to its client.
func failTo(w http.ResponseWriter, _ *http.Request, err error) {
	w.(interface{ Unwrap() http.ResponseWriter }).Unwrap().(*connection).failed = err
}

// slowBody is a request body whose second half arrives later, unless the connection
// breaks.
type slowBody struct {
	rest   []string
	breaks bool
	wait   func() error // called before the second half
	cut    <-chan struct{}
	left   func(n int)
}

func (b *slowBody) Read(into []byte) (int, error) {
	if len(b.rest) == 1 {
		if err := b.wait(); err != nil {
			return 0, err
		}
	}
	select {
	case <-b.cut:
		return 0, os.ErrDeadlineExceeded
	default:
	}
	if len(b.rest) == 0 && b.breaks {
		return 0, io.ErrUnexpectedEOF
	}
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(into, b.rest[0]) // the server's buffer is larger
	b.rest = b.rest[1:]
	b.left(n)
	return n, nil
}

// ask sends one request to the file's link.
func (p *part) ask(ctx context.Context, to *process, method string, header map[string]string, from, n int) (c *connection, err error) {
	c = &connection{ResponseRecorder: httptest.NewRecorder(), cut: make(chan struct{})}
	text := p.of.text[from : from+n]
	body := &slowBody{
		rest: []string{text[:n/2], text[n/2:]}, breaks: p.breaks, cut: c.cut,
		wait: func() error { return to.door.knock(&visit{label: label{"bytes", labelOf(ctx).of}}) },
		left: func(int) { p.of.sent = max(p.of.sent, from+n) },
	}
	r := httptest.NewRequestWithContext(ctx, method, p.of.url, nil)
	if method == http.MethodPatch || method == http.MethodPut {
		r = httptest.NewRequestWithContext(ctx, method, p.of.url, body)
		r.ContentLength = int64(n)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	defer func() {
		if v := recover(); v != nil {
			err = errBroken
		}
	}()
	to.Links.ServeHTTP(c, r)
	return c, c.failed
}

func (p *part) call(ctx context.Context, to *process) error {
	f := p.of
	if p.renew && f.url != "" {
		grant, err := to.Files.Renew(ctx, f.by, string(f.id), "")
		if err != nil {
			return err
		}
		f.url = grant.UploadURL
	}
	if f.url == "" {
		grant, err := to.Files.Create(ctx, f.by, upload.Request{Filename: f.name})
		if err != nil {
			return err
		}
		f.url = grant.UploadURL
	}
	if p.verb == "abandon" {
		_, err := p.ask(ctx, to, http.MethodDelete, nil, 0, 0)
		return err
	}
	from := 0
	if p.verb == "go on" {
		c, err := p.ask(ctx, to, http.MethodHead, nil, 0, 0)
		if err != nil {
			return err
		}
		p.note(c)
		if p.head, p.asked = p.here, true; p.whole {
			return p.complete(ctx, to)
		}
		from = p.here
	}
	c, err := p.sendFrom(ctx, to, from)
	if err != nil {
		return err
	}
	if p.note(c); p.whole || p.plain {
		p.whole = true
		return p.complete(ctx, to)
	}
	return nil
}

// sendFrom sends the bytes that follow the stored ones.
func (p *part) sendFrom(ctx context.Context, to *process, from int) (*connection, error) {
	f := p.of
	n := min(p.bytes, len(f.text)-from)
	last := from+n == len(f.text)
	header := map[string]string{"Upload-Complete": map[bool]string{true: "?1", false: "?0"}[last]}
	method := http.MethodPut
	if p.verb == "go on" {
		method = http.MethodPatch
		header["Upload-Offset"], header["Content-Type"] = strconv.Itoa(from), "application/partial-upload"
	}
	if p.plain {
		header = nil
	} else if p.length {
		header["Upload-Length"] = strconv.Itoa(len(f.text))
	}
	return p.ask(ctx, to, method, header, from, n)
}

func (p *part) complete(ctx context.Context, to *process) error {
	size := int64(len(p.of.text))
	_, err := to.Files.Complete(ctx, p.of.by, string(p.of.id), &size)
	return err
}

// note records the state reported by a response.
func (p *part) note(c *connection) {
	if n, err := strconv.Atoi(c.Header().Get("Upload-Offset")); err == nil {
		p.here = n
	}
	p.whole = c.Header().Get("Upload-Complete") == "?1"
}

// judgePart checks a response. Bytes that the server has reported as stored must still be
// stored, unless a user has since abandoned the file or it has expired.
func (s *simulation) judgePart(r *request) {
	p, f := r.part, r.part.of
	f.using--
	kept := p.lost == f.lost
	switch {
	case p.asked && p.head < p.told && kept:
		s.faultf("%s: only %d bytes are stored, but %d were reported before", r.label, p.head, p.told)
	case p.here > f.sent:
		s.faultf("%s: %d bytes are there, but %d were sent", r.label, p.here, f.sent)
	case p.here >= 0 && kept:
		f.told = p.here
	}
	u := s.uploads[f.id]
	want := fault.Code("")
	switch {
	case r.have.code == fault.QuotaExceeded:
		s.judgeRefusal(r)
		return
	case s.fullSince(r.sent) || !p.alone || f.using > 0 || !f.touched.Before(r.sent):
		return
	case r.have.code == fault.LinkInvalid && !p.renew && !s.jumped.IsZero():
		f.stale = true // the link is valid only in the future, after a clock jump
		return
	case f.id != "" && u == nil:
		want = fault.NotFound
	case r.have.broken && p.breaks:
		return
	case u != nil && u.Completed() && !p.whole:
		want = fault.UploadCompleted
	}
	if r.have.code != want || r.have.broken {
		s.faultf("%s: answered %s, broken %v, want %q", r.label, r.have.brief(), r.have.broken, want)
	}
}

// judgeParts checks a change of an upload that is being sent in parts.
func (s *simulation) judgeParts(r *request, old, now *app.Upload) error {
	p, f := r.part, r.part.of
	switch {
	case now.Email != f.by.Email || now.Organization != f.by.Organization || now.Filename != f.name:
		return errors.New("it is another one than was sent")
	case old == nil:
		f.id = now.ID
		return allow(now.Generation == 0 && now.Partial == nil && !now.Completed(), "it begins with bytes")
	case old.Completed():
		return errors.New("a complete one changes")
	case now.Completed():
		return allow(old.Generation > 0 && old.Generation == now.Generation && now.Partial == nil, "it is complete, but was not received")
	case now.Generation != old.Generation:
		return allow(now.Partial == nil && now.Size == int64(len(f.text)) && now.SHA256 == f.sum(), "it has other bytes than were sent")
	case now.Partial == nil:
		f.recordLoss()
		return allow(p.plain || p.verb == "abandon" || old.Partial == nil || old.Partial.Offset == 0, "what was there is dropped")
	}
	n := now.Partial
	switch again := old.Partial == nil || old.Partial.Generation != n.Generation; {
	case again:
		f.recordLoss()
		p.lost, p.asked = f.lost, false
		return allow(n.Offset == 0, "it begins with bytes")
	case n.Offset < old.Partial.Offset:
		return fmt.Errorf("only %d bytes are there, but %d were", n.Offset, old.Partial.Offset)
	case n.Length != nil && *n.Length != int64(len(f.text)) || n.Length == nil && old.Partial.Length != nil:
		return errors.New("its length differs from the announced one")
	case s.jumped.Before(r.sent) && (n.ReceivedAt.After(s.wall()) || s.wall().Sub(n.ReceivedAt.Time) > time.Minute):
		return fmt.Errorf("its bytes arrived at %v", n.ReceivedAt)
	}
	return s.checkPartial(now, f.text)
}

// checkPartial checks that the bytes of a partial upload are on disk.
func (s *simulation) checkPartial(u *app.Upload, text string) error {
	have, err := os.ReadFile(filepath.Join(s.dir, "uploads", "partial", fmt.Sprintf("%s.%d", u.ID, u.Partial.Generation)))
	n := int(u.Partial.Offset)
	if n == 0 {
		return nil
	}
	if err != nil || n > len(text) || n > len(have) || string(have[:n]) != text[:n] {
		return fmt.Errorf("the first %d bytes of %s are not on the disk: %q, %v", n, u.Filename, have, err)
	}
	return nil
}

// sendingOf returns the file of an upload, or nil if the upload was not sent in parts.
func (s *simulation) sendingOf(id app.UploadID) *sending {
	for _, f := range s.sendings {
		if f.id == id {
			return f
		}
	}
	return nil
}

// touch records that something other than its own requests has changed a partial upload.
func (s *simulation) touch(c *change, id app.UploadID) {
	for _, r := range s.requests {
		if r.purge != nil {
			delete(r.purge.parts, id)
		}
	}
	if f := s.sendingOf(id); f != nil && c.label.verb != "part" {
		f.touched = time.Now()
		f.recordLoss()
	}
}

// judgeExpired checks that retention deletes only partial uploads that have not
// progressed recently.
func (s *simulation) judgeExpired(c *change, old, now *app.Upload) error {
	r := s.requests[c.label]
	if r == nil || old == nil || old.Partial == nil {
		return errors.New("it changes without a request")
	}
	want := *old
	want.Partial = nil
	if s.wall().After(r.purge.latest) {
		r.purge.latest = s.wall()
	}
	return allow(reflect.DeepEqual(&want, now) && old.Partial.ReceivedAt.Before(r.purge.latest.Add(-partialFor)), "what was there is dropped too early")
}

// stored returns the number of bytes stored by a user or an organization: results and
// files, including parts received or expected.
func (s *simulation) stored(organization, email string) (bytes int64) {
	for _, u := range s.uploads {
		if u.Organization != organization || email != "" && u.Email != email {
			continue
		}
		bytes += u.Size
		if p := u.Partial; p != nil && p.Length != nil {
			bytes += *p.Length
		} else if p != nil {
			bytes += p.Offset
		}
	}
	for _, e := range s.ledger.jobs {
		if e.Organization == organization && (email == "" || e.Email == email) && !e.IsBatch() {
			bytes += e.Usage().Bytes
		}
	}
	return bytes
}

// compareStored checks the totals that the store keeps for quotas.
func (s *simulation) compareStored(tx app.Tx) error {
	for _, by := range users {
		for _, email := range []string{"", by.Email} {
			have, err := tx.Stored(by.Organization, email)
			if want := s.stored(by.Organization, email); err != nil || have.Bytes != want {
				return fmt.Errorf("%d bytes count for %s %s, want %d; %w", have.Bytes, by.Organization, email, want, err)
			}
		}
	}
	return nil
}

// age makes all upload files look as if they were some days old.
func (s *simulation) age() {
	old := s.wall().Add(-48 * time.Hour)
	err := filepath.WalkDir(filepath.Join(s.dir, "uploads"), func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			err = os.Chtimes(path, old, old)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err) // an error in the test itself
	}
}

// cleanUp has the service delete files without a record, as it does daily.
func (s *simulation) cleanUp() {
	s.up()
	if s.process == nil {
		return
	}
	ctx := context.Background()
	uploadKnown := func(id app.UploadID, generation int) bool {
		u, err := s.process.Files.Upload(ctx, id)
		return err == nil && u.Has(generation)
	}
	if _, err := s.process.files.CollectGarbage(ctx, uploadKnown, func(app.JobID) bool { return true }); err != nil {
		s.faultf("sweep: %v", err)
	}
	s.changed = true
}

// judgeFiles cleans up and checks that every remaining file has a record.
func (s *simulation) judgeFiles() {
	if s.process == nil {
		return
	}
	s.age()
	s.cleanUp()
	s.check()
	all, err := filepath.Glob(filepath.Join(s.dir, "uploads", "*", "*"))
	for _, name := range all {
		id, generation, _ := strings.Cut(filepath.Base(name), ".")
		n, _ := strconv.Atoi(generation)
		if u := s.uploads[app.UploadID(id)]; filepath.Base(filepath.Dir(name)) != "tmp" && (u == nil || !u.Has(n)) {
			s.faultf("no record names the file %s", name)
		}
	}
	if err != nil {
		s.faultf("%v", err)
	}
}
