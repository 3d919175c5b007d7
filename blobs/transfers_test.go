package blobs

import (
	"errors"
	"fmt"
	"testing"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/test/must"
)

func TestTransfersOfOneHolderLeaveSlotsForOthers(t *testing.T) {
	transfers := newTransfers(3, 2)
	begin := func(holder string, want bool) func() {
		t.Helper()
		end, err := transfers.begin(holder)
		if (err == nil) != want || err != nil && !errors.Is(err, fault.Unavailable) {
			t.Errorf("transfer of %q: %v, want it to begin: %v", holder, err, want)
		}
		return end
	}
	first := begin("ann", true)
	begin("ann", true)
	begin("ann", false)
	begin("bob", true)
	begin("cy", false) // no slot is free
	first()
	begin("bob", true)
	begin("ann", false)
	if len(transfers.byHolder) != 2 {
		t.Errorf("%d holders are remembered", len(transfers.byHolder))
	}
}

func TestLinksOfOneHolderShareItsLimit(t *testing.T) {
	f := start(t, func(o *Options) { o.StreamsPerHolder = 1 })
	put := func(holder string) string {
		id := string(f.newUpload("text/plain"))
		return f.link(app.Link{Kind: app.UploadPut, ID: id, Filename: "a", ContentType: "text/plain", Holder: holder})
	}
	conn, answer := f.dial("PUT", put("ann"), "Content-Length: 5", "Expect: 100-continue")
	wantLine(t, answer, "100 Continue") // so the transfer has begun
	second := put("ann")
	f.do("PUT", second, "").want(t, 503, fault.Unavailable)
	if res := f.do("PUT", put("bob"), ""); res.status != 200 {
		t.Errorf("another holder: status %d, want 200", res.status)
	}
	fmt.Fprint(conn, "hello")
	wantLine(t, answer, "200 OK")
	// The response can arrive before the slot is released.
	must.Become(t, "the slot is free", func() bool { return f.do("PUT", second, "").status == 200 })
}
