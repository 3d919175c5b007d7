package blobs

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"molrun/app"
)

func TestTransfersOfOneHolderLeaveRoomForOthers(t *testing.T) {
	transfers := newTransfers(3, 2)
	begin := func(holder string, want bool) func() {
		t.Helper()
		end, err := transfers.begin(holder)
		if (err == nil) != want || err != nil && !errors.Is(err, app.Unavailable) {
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
