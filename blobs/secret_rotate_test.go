package blobs

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/fault"
)

func (f *fixture) status(method, link string) int {
	f.t.Helper()
	r, err := http.NewRequest(method, f.server.URL+link, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	response, err := f.server.Client().Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func TestRotatedSecretSignsAtOnceAndOldLinksLiveOn(t *testing.T) {
	f := start(t)
	id := string(f.newUpload("text/plain"))
	sign := func() string {
		return f.Link(app.Link{Kind: app.UploadGet, ID: id, Filename: "a", Expires: f.clock.Now().Add(MaxLinkLife)})
	}
	before := sign()
	kid, err := f.RotateSecret()
	if err != nil {
		t.Fatal(err)
	}
	after := sign()
	for what, link := range map[string]string{"before": before, "after": after} {
		if status := f.status("GET", link); status != 409 { // nothing was uploaded, but the link is good
			t.Errorf("a link made %s the rotation: %d", what, status)
		}
	}
	if c, err := f.links.Load().verify(request(t, "GET", after)); err != nil || f.links.Load().kid != kid {
		t.Errorf("%+v, %v: links are signed by %q, want %q", c, err, f.links.Load().kid, kid)
	}
	read, err := LoadSecret(f.path)
	if err != nil || len(read.Keys) != 2 || read.newest().ID != kid {
		t.Errorf("the file holds %+v, %v", read, err)
	}
	if info, err := os.Stat(filepath.Join(f.path, "secret")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	f.clock.move(MaxLinkLife + time.Minute)
	if status := f.status("GET", before); status != 403 {
		t.Errorf("the old link after its time: %d", status)
	}
}

func TestOldKeysGoWhenNoLinkCanNameThem(t *testing.T) {
	f := start(t)
	f.clock.move(time.Since(f.clock.Now()) + time.Hour) // after the first key was made
	rotate := func() {
		t.Helper()
		if _, err := f.RotateSecret(); err != nil {
			t.Fatal(err)
		}
	}
	keys := func(want int) {
		t.Helper()
		if s, err := LoadSecret(f.path); err != nil || len(s.Keys) != want {
			t.Errorf("%d keys, %v; want %d", len(s.Keys), err, want)
		}
	}
	rotate()
	keys(2)
	f.clock.move(MaxLinkLife)
	rotate() // links of the first key may just still live
	keys(3)
	f.clock.move(2 * leeway)
	rotate() // those of the first can't, those of the second can
	keys(3)
	f.clock.move(2 * MaxLinkLife)
	rotate()
	keys(2)
	f.clock.move(-48 * time.Hour) // a clock set back must not make the old key sign again
	kid, err := f.RotateSecret()
	if err != nil || f.links.Load().kid != kid {
		t.Errorf("after the clock was set back %q signs, want the new %q, %v", f.links.Load().kid, kid, err)
	}
}

func TestKeyRingIsBounded(t *testing.T) {
	f := start(t)
	for range maxKeys - 1 {
		if _, err := f.RotateSecret(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.RotateSecret(); !errors.Is(err, fault.Invalid) {
		t.Errorf("one more: %v, want INVALID", err)
	}
	if s, err := LoadSecret(f.path); err != nil || len(s.Keys) != maxKeys {
		t.Errorf("%d keys, %v", len(s.Keys), err)
	}
}

func TestFailedRotationLeavesTheSecretAsItIs(t *testing.T) {
	f := start(t)
	id := string(f.newUpload("text/plain"))
	link := f.Link(app.Link{Kind: app.UploadGet, ID: id, Filename: "a", Expires: f.clock.Now().Add(time.Hour)})
	name := filepath.Join(f.path, "secret")
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := f.RotateSecret(); err == nil {
		t.Error("a secret that others can read is rotated")
	}
	if status := f.status("GET", link); status != 409 {
		t.Errorf("a link after the failure: %d", status)
	}
}

func TestKeysForReadingAreNoneForWriting(t *testing.T) {
	l, _ := testLinks(t)
	for kid, key := range l.get.keys {
		if string(key) == string(l.put.keys[kid]) {
			t.Errorf("key %s is the same for both", kid)
		}
	}
}

func TestTransfersOfOneHolderLeaveRoomForOthers(t *testing.T) {
	transfers := newTransfers(3, 2)
	begin := func(holder string, want bool) func() {
		t.Helper()
		end, err := transfers.begin(holder)
		if (err == nil) != want || err != nil && !errors.Is(err, fault.Unavailable) {
			t.Errorf("a transfer of %q: %v, want room: %v", holder, err, want)
		}
		return end
	}
	first := begin("ann", true)
	begin("ann", true)
	begin("ann", false)
	begin("bob", true)
	begin("cy", false) // all are taken
	first()
	begin("bob", true)
	begin("ann", false)
	if len(transfers.byHolder) != 2 {
		t.Errorf("%d holders are remembered", len(transfers.byHolder))
	}
}

func TestLinkCountsAmongThoseOfItsHolder(t *testing.T) {
	f := start(t, func(o *Options) { o.StreamsPerHolder = 1 })
	link := func(holder string) string {
		id := string(f.newUpload("text/plain"))
		return f.Link(app.Link{Kind: app.UploadPut, ID: id, Filename: "a", ContentType: "text/plain", Expires: f.clock.Now().Add(time.Hour), Holder: holder})
	}
	mine, other, anns := link("ann"), link("bob"), link("ann")
	body, release := stalled()
	sent := make(chan error, 1)
	go func() {
		r, err := http.NewRequest("PUT", f.server.URL+mine, body)
		if err == nil {
			var response *http.Response
			if response, err = f.server.Client().Do(r); err == nil {
				response.Body.Close()
			}
		}
		sent <- err
	}()
	<-body.begun
	refused := false
	for i := 0; i < 10_000 && !refused; i++ { // until the other one has arrived
		refused = f.status("PUT", anns) == 503
	}
	if !refused {
		t.Error("ann has more transfers than may be of one holder")
	}
	if status := f.status("PUT", other); status != 200 {
		t.Errorf("one of bob's: %d, want 200", status)
	}
	release()
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if status := f.untilRoom(anns); status != 200 {
		t.Errorf("ann's after the first has ended: %d", status)
	}
}

// untilRoom repeats a PUT as long as it is refused for want of room: the
// answer to the one before can arrive before its room is given back.
func (f *fixture) untilRoom(link string) (status int) {
	f.t.Helper()
	for range 10_000 {
		if status = f.status("PUT", link); status != 503 {
			break
		}
	}
	return status
}

// stall is a body that tells when the server has taken its first bytes, and
// ends when released.
type stall struct {
	begun, end chan struct{}
	reads      int
}

func stalled() (*stall, func()) {
	s := &stall{begun: make(chan struct{}), end: make(chan struct{})}
	return s, func() { close(s.end) }
}

// Read implements io.Reader.
func (s *stall) Read(p []byte) (int, error) {
	s.reads++
	switch s.reads {
	case 1:
		return copy(p, "text"), nil
	case 2:
		close(s.begun)
	}
	<-s.end
	return 0, io.EOF
}
