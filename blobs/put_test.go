package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/upload"
	"molrun/app/test/must"
)

func sha(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func TestUploadIsStoredWholeAndRecorded(t *testing.T) {
	f := start(t)
	for _, content := range []string{"", "x", "ATOM      1\n", strings.Repeat("a", bufferSize), text(3*bufferSize + 17)} {
		for _, headers := range [][]string{nil, {"Upload-Complete", "?1"}} {
			for _, chunked := range []bool{false, true} {
				what := fmt.Sprintf("%d bytes, chunked %v, %q", len(content), chunked, headers)
				id := f.newUpload("text/plain")
				var body io.Reader = strings.NewReader(content)
				if chunked {
					body = io.MultiReader(body) // hides the length
				}
				res := f.send("PUT", f.putLink(id), body, headers...)
				var got map[string]any
				must.OK(t, json.Unmarshal([]byte(res.body), &got))
				must.Equal(t, what, got, map[string]any{"status": "received", "size": float64(len(content)), "sha256": sha(content)})
				if complete := res.header.Get("Upload-Complete"); res.status != 200 || complete == "?1" != (headers != nil) {
					t.Errorf("%s: status %d, Upload-Complete %q", what, res.status, complete)
				}
				f.wantWhole(id, content)
				info, err := os.Stat(f.UploadPath(id, 1))
				if err != nil || info.Mode() != 0o600 || info.Size() != int64(len(content)) || f.rules.uploads[id].Generation != 1 {
					t.Errorf("%s: file %+v, err %v, record %+v", what, info, err, f.rules.uploads[id])
				}
			}
		}
	}
	if left := f.names(tmpDir); len(left) > 0 {
		t.Errorf("temporary files left: %q", left)
	}
}

func TestFurtherPutReplacesUntilCompletion(t *testing.T) {
	f := start(t)
	id := f.uploaded("first")
	f.upload(id, "second")
	if _, err := os.Stat(f.UploadPath(id, 1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the first generation is still there: %v", err)
	}
	f.rules.complete(id)
	f.do("PUT", f.putLink(id), "third").want(t, 409, fault.UploadCompleted)
	must.Equal(t, "the completed bytes", f.do("GET", f.getLink(id), "").body, "second")
}

func TestUploadRefusesOtherTypesAndEncodings(t *testing.T) {
	f := start(t)
	id := f.newUpload("text/plain")
	link := f.link(app.Link{Kind: app.UploadPut, ID: string(id), Filename: "a", ContentType: "text/plain; charset=utf-8"})
	tests := []struct {
		name    string
		headers []string
		status  int
		code    fault.Code
	}{
		{"none", nil, 200, ""},
		{"the same", []string{"Content-Type", "text/plain; charset=utf-8"}, 200, ""},
		{"the same in other case", []string{"Content-Type", "TEXT/Plain;charset=utf-8"}, 200, ""},
		{"another", []string{"Content-Type", "text/html"}, 403, fault.LinkInvalid},
		{"without its parameter", []string{"Content-Type", "text/plain"}, 403, fault.LinkInvalid},
		{"malformed", []string{"Content-Type", "text/plain; charset"}, 403, fault.LinkInvalid},
		{"twice", []string{"Content-Type", "text/plain; charset=utf-8", "Content-Type", "text/plain; charset=utf-8"}, 403, fault.LinkInvalid},
		{"a range", []string{"Content-Range", "bytes 0-3/10"}, 422, ""},
		{"compressed", []string{"Content-Encoding", "gzip"}, 415, fault.UnsupportedMediaType},
		{"not compressed", []string{"Content-Encoding", "identity"}, 200, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := *f.rules.uploads[id]
			res := f.do("PUT", link, tt.name, tt.headers...)
			stored := *f.rules.uploads[id] != before
			if res.status != tt.status || stored != (tt.status == 200) || tt.code != "" && res.code() != tt.code {
				t.Errorf("status %d, stored %v, body %s; want %d %s", res.status, stored, res.body, tt.status, tt.code)
			}
		})
	}
}

// TestConcurrentPutsNeverMix concurrently sends different bytes through one link. Exactly
// one of the bodies must be recorded, complete, and the only one on disk.
func TestConcurrentPutsNeverMix(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("one generation for all %v", shared), func(t *testing.T) {
			f := start(t)
			id := f.newUpload("text/plain")
			link := f.putLink(id)
			svc := Service(f.rules)
			if shared {
				svc = sameGeneration{f.rules}
			}
			f.server.Config.Handler = Handler(f.Dir, svc, writeError)
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					res := f.do("PUT", link, strings.Repeat(string(rune('a'+i)), 100_000+i))
					if res.status != 200 && res.code() != fault.UploadCompleted {
						t.Errorf("PUT: status %d, body %s", res.status, res.body)
					}
				})
			}
			wg.Wait()
			u := f.rules.uploads[id]
			stored, err := os.ReadFile(f.UploadPath(id, u.Generation))
			if err != nil || sha(string(stored)) != u.SHA256 || int64(len(stored)) != u.Size {
				t.Errorf("the record %+v does not fit the %d bytes stored (err %v)", u, len(stored), err)
			}
			must.Equal(t, "files, of which one is current", len(f.names(uploadsDir)), 1)
		})
	}
}

// sameGeneration assigns concurrent uploads the same generation.
type sameGeneration struct{ *rules }

func (s sameGeneration) BeginUpload(ctx context.Context, id app.UploadID, _ int64) (int, *upload.Reservation, error) {
	u, err := s.Upload(ctx, id)
	if err != nil {
		return 0, nil, err
	}
	return u.Generation + 1, nil, nil
}

func TestPutSkipsGenerationsLeftByACrash(t *testing.T) {
	f := start(t)
	id := f.uploaded("first")
	must.OK(t, os.WriteFile(f.UploadPath(id, 2), []byte("not recorded"), 0o600))
	f.upload(id, "second")
	if u := f.rules.uploads[id]; u.Generation != 3 || u.SHA256 != sha("second") {
		t.Errorf("record %+v, want generation 3", u)
	}
	if left, err := os.ReadFile(f.UploadPath(id, 2)); string(left) != "not recorded" {
		t.Errorf("the unrecorded file was changed: %q, %v", left, err)
	}
}

func TestUnfinishedPutKeepsOnlyAFileThatMayBeRecorded(t *testing.T) {
	tests := []struct {
		name string
		err  error
		code fault.Code
		left int
	}{
		{"refused", fault.Errorf(fault.UploadCompleted, "completed meanwhile"), fault.UploadCompleted, 0},
		{"deleted", fault.Errorf(fault.NotFound, "deleted meanwhile"), fault.NotFound, 0},
		{"unknown", errors.New("commit: input/output error"), fault.Internal, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := start(t)
			f.rules.finish = tt.err
			res := f.do("PUT", f.putLink(f.newUpload("text/plain")), "bytes")
			must.Equal(t, "code", res.code(), tt.code)
			must.Equal(t, "files", len(f.names(uploadsDir)), tt.left)
		})
	}
}

// leavingClient is a Service that records an upload only after the client has
// disconnected.
type leavingClient struct {
	*rules
	requests chan context.Context
	arrived  chan struct{} // closed when the bytes have arrived
}

func (s leavingClient) FinishUpload(ctx context.Context, id app.UploadID, f app.StoredFile) (int, error) {
	close(s.arrived)
	select {
	case <-(<-s.requests).Done():
	case <-time.After(must.Patience):
		return 0, errors.New("the server does not notice that the client has left")
	}
	if err := ctx.Err(); err != nil {
		return 0, err // as the store does
	}
	return s.rules.FinishUpload(ctx, id, f)
}

func TestUploadIsRecordedThoughItsClientHasLeft(t *testing.T) {
	f := start(t)
	s := leavingClient{f.rules, make(chan context.Context, 1), make(chan struct{})}
	handler := Handler(f.Dir, s, writeError)
	f.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests <- r.Context()
		handler.ServeHTTP(w, r)
	})
	id := f.newUpload("text/plain")
	conn, _ := f.dial("PUT", f.putLink(id), "Content-Length: 5")
	fmt.Fprint(conn, "bytes")
	<-s.arrived
	must.OK(t, conn.Close())
	f.server.Close() // waits for the handler
	if u := f.rules.uploads[id]; u.Generation == 0 || u.Size != 5 || u.SHA256 != sha("bytes") {
		t.Errorf("record %+v, want the bytes that had arrived", u)
	}
	must.Equal(t, "files", len(f.names(uploadsDir)), 1)
}

func TestBrokenUploadLeavesNothing(t *testing.T) {
	tests := []struct {
		name, header, body string
		reset              bool
	}{
		{"too few bytes", "Content-Length: 100", "only these", false},
		{"no last chunk", "Transfer-Encoding: chunked", "5\r\nhello\r\n", false},
		{"malformed chunk", "Transfer-Encoding: chunked", "5\r\nhello\r\nxyz\r\n", false},
		{"reset", "Content-Length: 100", "only these", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := start(t)
			id := f.newUpload("text/plain")
			conn, answer := f.dial("PUT", f.putLink(id), tt.header)
			fmt.Fprint(conn, tt.body)
			if tt.reset {
				_ = conn.SetLinger(0)
				conn.Close()
			} else {
				_ = conn.CloseWrite()
				if rest, _ := io.ReadAll(answer); len(rest) > 0 {
					t.Errorf("answer %q to half a file", rest)
				}
			}
			f.server.Close() // waits for the handler
			if names := f.names(uploadsDir); len(names) > 0 || f.rules.uploads[id].Generation != 0 {
				t.Errorf("files %q and record %+v of half a file", names, f.rules.uploads[id])
			}
		})
	}
}

func TestStalledUploadIsAborted(t *testing.T) {
	f := start(t, func(o *Options) { o.Idle = 20 * time.Millisecond })
	conn, answer := f.dial("PUT", f.putLink(f.newUpload("text/plain")), "Content-Length: 100")
	fmt.Fprint(conn, "only these")
	if rest, err := io.ReadAll(answer); len(rest) > 0 {
		t.Errorf("answer %q (err %v) to half a file", rest, err)
	}
	f.server.Close()
	if names := f.names(uploadsDir); len(names) > 0 {
		t.Errorf("files left: %q", names)
	}
}

func TestPutIsRefusedBeforeItsBody(t *testing.T) {
	f := start(t)
	id := f.newUpload("text/plain")
	expect := []string{"Content-Length: 5", "Expect: 100-continue"}

	conn, answer := f.dial("PUT", f.putLink(id), expect...)
	wantLine(t, answer, "100 Continue")
	fmt.Fprint(conn, "hello")
	wantLine(t, answer, "200 OK")

	f.rules.complete(id)
	_, answer = f.dial("PUT", f.putLink(id), expect...)
	wantLine(t, answer, "409")
}

func TestUploadKeepsTheReserveFree(t *testing.T) {
	f := start(t, func(o *Options) { o.Reserve = 1 << 60 })
	id := f.newUpload("text/plain")
	f.do("PUT", f.putLink(id), "x").want(t, 507, fault.StorageFull)

	f = start(t)
	id = f.newUpload("text/plain")
	_, answer := f.dial("PUT", f.putLink(id), "Content-Length: 1000000000000000", "Expect: 100-continue")
	wantLine(t, answer, "507") // before the body is sent
}

func TestLinksOfOneHolderShareItsLimit(t *testing.T) {
	f := start(t, func(o *Options) { o.StreamsPerHolder = 1 })
	put := func(holder string) string {
		id := string(f.newUpload("text/plain"))
		return f.link(app.Link{Kind: app.UploadPut, ID: id, Filename: "a", ContentType: "text/plain", Holder: holder})
	}
	conn, answer := f.dial("PUT", put("ann"), "Content-Length: 5", "Expect: 100-continue")
	wantLine(t, answer, "100 Continue") // the transfer has started
	second := put("ann")
	f.do("PUT", second, "").want(t, 503, fault.Unavailable)
	must.Equal(t, "status of another holder", f.do("PUT", put("bob"), "").status, 200)
	fmt.Fprint(conn, "hello")
	wantLine(t, answer, "200 OK")
	// The response can arrive before the slot is released.
	must.Become(t, "the slot is free", func() bool { return f.do("PUT", second, "").status == 200 })
}
