package blobs

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/upload"
	"molrun/app/test/must"
)

// text returns n random bytes, so that a misplaced part cannot go unnoticed.
func text(n int) string {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{9}).Read(b)
	return string(b)
}

// patch sends a part; last is Upload-Complete.
func (f *fixture) patch(id app.UploadID, offset int, body, last string, headers ...string) response {
	f.t.Helper()
	return f.do("PATCH", f.putLink(id), body, append([]string{
		"Content-Type", "application/partial-upload", "Upload-Offset", strconv.Itoa(offset), "Upload-Complete", last,
	}, headers...)...)
}

// wantHere checks the response to HEAD.
func (f *fixture) wantHere(id app.UploadID, offset int, complete, length string) {
	f.t.Helper()
	res := f.do("HEAD", f.putLink(id), "")
	h := res.header
	if res.status != 204 || h.Get("Upload-Offset") != strconv.Itoa(offset) || h.Get("Upload-Complete") != complete ||
		h.Get("Upload-Length") != length || !strings.HasPrefix(h.Get("Upload-Limit"), "max-age=") || !strings.Contains(h.Get("Cache-Control"), "no-store") {
		f.t.Errorf("HEAD: status %d, %v; want offset %d, complete %s, length %q", res.status, h, offset, complete, length)
	}
}

// wantWhole checks that an upload has this content and a matching record.
func (f *fixture) wantWhole(id app.UploadID, content string) {
	f.t.Helper()
	if got := f.do("GET", f.getLink(id), ""); got.status != 200 || got.body != content {
		f.t.Errorf("GET: status %d, %d bytes; want %d", got.status, len(got.body), len(content))
	}
	if u := f.rules.uploads[id]; u.SHA256 != sha(content) || u.Size != int64(len(content)) || u.CRC32 != crc32.ChecksumIEEE([]byte(content)) || u.Partial != nil {
		f.t.Errorf("record %+v", u)
	}
}

func TestPartsBecomeTheFile(t *testing.T) {
	f := start(t, func(o *Options) { o.Block = 1 << 20 })
	whole := text(5<<20 + 3)
	for _, withLength := range []bool{true, false} {
		id := f.newUpload("text/plain")
		f.wantHere(id, 0, "?0", "")
		var headers []string
		length := ""
		if withLength {
			length = strconv.Itoa(len(whole))
			headers = []string{"Upload-Length", length}
		}
		first := f.do("PUT", f.putLink(id), whole[:1000], append(headers, "Upload-Complete", "?0")...)
		if first.status != 201 || first.header.Get("Upload-Complete") != "?0" || !strings.HasPrefix(first.header.Get("Location"), "./") {
			t.Errorf("first part: status %d, %v, %s", first.status, first.header, first.body)
		}
		f.wantHere(id, 1000, "?0", length)
		f.patch(id, 0, "x", "?0").want(t, 409, fault.UploadOffset)
		f.patch(id, 2000, "x", "?0").want(t, 409, fault.UploadOffset)
		if res := f.patch(id, 1000, whole[1000:3<<20], "?0"); res.status != 204 || res.header.Get("Upload-Offset") != "3145728" {
			t.Errorf("second part: status %d, %v, %s", res.status, res.header, res.body)
		}
		f.do("GET", f.getLink(id), "").want(t, 409, fault.UploadNotReceived)
		res := f.patch(id, 3<<20, whole[3<<20:], "?1")
		if res.status != 200 || res.header.Get("Upload-Complete") != "?1" || !strings.Contains(res.body, sha(whole)) {
			t.Errorf("last part: status %d, %v, %s", res.status, res.header, res.body)
		}
		f.wantWhole(id, whole)
		f.wantHere(id, len(whole), "?1", strconv.Itoa(len(whole)))
		if again := f.patch(id, len(whole), "", "?1"); again.status != 200 || again.body != res.body {
			t.Errorf("the last answer again: status %d, %s", again.status, again.body)
		}
		f.patch(id, 3<<20, whole[3<<20:], "?1").want(t, 409, fault.UploadOffset)
	}
}

// TestDisconnectKeepsReceivedBytes breaks connections mid-transfer and continues at the offset
// that HEAD reports.
func TestDisconnectKeepsReceivedBytes(t *testing.T) {
	f := start(t, func(o *Options) { o.Block = 64 << 10 })
	whole := text(4 << 20)
	id := f.newUpload("text/plain")
	sent := 0
	for i := 0; sent < len(whole) && i < 100; i++ {
		from, _ := strconv.Atoi(f.do("HEAD", f.putLink(id), "").header.Get("Upload-Offset"))
		if from < sent-bufferSize-64<<10 || from > sent { // a reset can drop unread bytes
			t.Fatalf("sent %d bytes, HEAD reports %d", sent, from)
		}
		sent = min(len(whole), from+600_000+i)
		conn, _ := f.dial("PATCH", f.putLink(id), "Content-Type: application/partial-upload", "Upload-Complete: ?1",
			fmt.Sprintf("Upload-Offset: %d", from), fmt.Sprintf("Content-Length: %d", len(whole)-from))
		fmt.Fprint(conn, whole[from:sent])
		if sent < len(whole) {
			// The bytes must have been read before the connection breaks.
			must.Become(t, "they are saved", func() bool {
				u, _ := f.rules.Upload(t.Context(), id)
				return u.Partial != nil && u.Partial.Offset >= int64(sent)-bufferSize-64<<10
			})
			conn.Close()
			continue
		}
		io.Copy(io.Discard, io.LimitReader(conn, 100))
	}
	f.wantWhole(id, whole)
}

// TestDisconnectLosesNoReceivedBytes closes a connection in the middle of a block.
func TestDisconnectLosesNoReceivedBytes(t *testing.T) {
	f := start(t)
	id, whole := f.newUpload("text/plain"), text(1<<20)
	conn, answer := f.dial("PUT", f.putLink(id), "Upload-Complete: ?1", fmt.Sprintf("Content-Length: %d", len(whole)))
	fmt.Fprint(conn, whole[:bufferSize+5])
	must.OK(t, conn.CloseWrite())
	_ = conn.SetReadDeadline(time.Now().Add(must.Patience))
	_, _ = io.Copy(io.Discard, answer) // until the server has seen the end
	f.wantHere(id, bufferSize+5, "?0", strconv.Itoa(len(whole)))
}

// TestNewerRequestInterruptsWriter stalls a writer and continues on another connection.
func TestNewerRequestInterruptsWriter(t *testing.T) {
	f := start(t, func(o *Options) { o.Block = 1 << 10 })
	whole := text(1 << 20)
	for _, how := range []string{"HEAD", "PATCH", "PUT", "DELETE"} {
		t.Run(how, func(t *testing.T) {
			id := f.newUpload("text/plain")
			conn, answer := f.dial("PUT", f.putLink(id), "Upload-Complete: ?1", fmt.Sprintf("Content-Length: %d", len(whole)))
			fmt.Fprint(conn, whole[:bufferSize])
			must.Become(t, "the first bytes are saved", func() bool {
				u, _ := f.rules.Upload(t.Context(), id)
				return u.Partial != nil && u.Partial.Offset == bufferSize
			})
			fmt.Fprint(conn, whole[bufferSize:bufferSize+5]) // the server might or might not read these bytes
			switch how {
			case "HEAD":
				res := f.do("HEAD", f.putLink(id), "")
				at, _ := strconv.Atoi(res.header.Get("Upload-Offset"))
				if at < bufferSize || at > bufferSize+5 {
					t.Fatalf("HEAD tells %d", at)
				}
				f.patch(id, at, whole[at:], "?1").want(t, 200, "")
				f.wantWhole(id, whole)
			case "PATCH":
				at, _ := strconv.Atoi(f.patch(id, 1, "x", "?1").header.Get("Upload-Offset"))
				f.patch(id, at, whole[at:], "?1").want(t, 200, "")
				f.wantWhole(id, whole)
			case "PUT":
				f.do("PUT", f.putLink(id), "another", "Upload-Complete", "?1").want(t, 200, "")
				f.wantWhole(id, "another")
			case "DELETE":
				must.Equal(t, "status", f.do("DELETE", f.putLink(id), "").status, 204)
				f.wantHere(id, 0, "?0", "")
			}
			_ = conn.SetReadDeadline(time.Now().Add(must.Patience))
			if line, err := answer.ReadString('\n'); err == nil {
				t.Errorf("the older request got the answer %q", line)
			}
		})
	}
}

// TestConcurrentPartsNeverMix concurrently sends the same part on many connections.
func TestConcurrentPartsNeverMix(t *testing.T) {
	f := start(t, func(o *Options) { o.Block = 32 << 10 })
	whole := text(1 << 20)
	for range 5 {
		id := f.newUpload("text/plain")
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				r, _ := http.NewRequest("PATCH", f.putLink(id), strings.NewReader(whole))
				r.Header = http.Header{"Content-Type": {partialType}, "Upload-Offset": {"0"}, "Upload-Complete": {"?1"}}
				if i == 5 {
					r, _ = http.NewRequest("HEAD", f.putLink(id), nil)
				}
				if res, err := f.server.Client().Do(r); err == nil {
					res.Body.Close()
				}
			})
		}
		wg.Wait()
		for range 100 {
			res := f.do("HEAD", f.putLink(id), "")
			at, _ := strconv.Atoi(res.header.Get("Upload-Offset"))
			if res.header.Get("Upload-Complete") == "?1" {
				break
			}
			f.patch(id, at, whole[at:], "?1")
		}
		f.wantWhole(id, whole)
	}
	if len(f.server.Config.Handler.(*Links).writers.writers) > 0 {
		t.Error("turns are left")
	}
}

func TestContentRange(t *testing.T) {
	f := start(t)
	whole := text(3000)
	id := f.newUpload("text/plain")
	put := func(value, body string, headers ...string) response {
		return f.do("PUT", f.putLink(id), body, append(headers, "Content-Range", value)...)
	}
	wantMore := func(res response, ranges string) {
		t.Helper()
		if res.status != 308 || res.header.Get("Range") != ranges || res.header.Get("Location") != "" {
			t.Errorf("status %d, Range %q, want 308, %q; %s", res.status, res.header.Get("Range"), ranges, res.body)
		}
	}
	wantMore(put("bytes */3000", ""), "")
	if res := put("bytes 1000-1999/3000", whole[1000:2000]); res.status != 409 || res.header.Get("Upload-Offset") != "0" {
		t.Errorf("a gap: status %d, %v", res.status, res.header)
	}
	wantMore(put("bytes 0-999/*", whole[:1000]), "bytes=0-999")
	wantMore(put("bytes */*", ""), "bytes=0-999")
	if res := put("bytes 0-999/*", whole[:1000]); res.status != 409 || res.header.Get("Range") != "bytes=0-999" {
		t.Errorf("a part again: status %d, %v", res.status, res.header)
	}
	for _, bad := range []string{"bytes 1000-1998/3000", "bytes=1000-1999/3000", "bytes 1000-/3000", "bytes 1999-1000/3000", "bytes 1000-1999/1500", "lines 1000-1999/3000", ""} {
		if res := put(bad, whole[1000:2000]); res.status != 422 || !strings.Contains(res.body, "INVALID") {
			t.Errorf("%q: status %d, %s", bad, res.status, res.body)
		}
	}
	wantMore(put("bytes 1000-1999/3000", whole[1000:2000]), "bytes=0-1999")
	put("bytes 2000-2999/4000", whole[2000:]).want(t, 400, fault.UploadLength)
	put("bytes 2000-2999/3000", whole[2000:], "Content-Type", "text/html").want(t, 403, fault.LinkInvalid)
	put("bytes 2000-2999/3000", whole[2000:], "Upload-Complete", "?0").want(t, 400, fault.UploadLength)
	if res := put("bytes 2000-2999/3000", whole[2000:], "Content-Type", "text/plain", "Upload-Complete", "?1"); res.status != 200 || !strings.Contains(res.body, sha(whole)) {
		t.Errorf("status %d, %s", res.status, res.body)
	}
	f.wantWhole(id, whole)
	if res := put("bytes */3000", ""); res.status != 200 || !strings.Contains(res.body, sha(whole)) {
		t.Errorf("asked again: status %d, %s", res.status, res.body)
	}
	wantMore(put("bytes 0-0/2", "x"), "bytes=0-0") // a different file
	f.wantHere(id, 1, "?0", "2")
}

func TestLengthsThatChangeAreRefused(t *testing.T) {
	f := start(t)
	id := f.newUpload("text/plain")
	put := func(body string, headers ...string) response { return f.do("PUT", f.putLink(id), body, headers...) }
	put("abc", "Upload-Complete", "?1", "Upload-Length", "4").want(t, 400, fault.UploadLength)
	put("abcde", "Upload-Complete", "?0", "Upload-Length", "4").want(t, 400, fault.UploadLength)
	f.wantHere(id, 0, "?0", "")
	put("abc", "Upload-Complete", "?0").want(t, 201, "")
	f.wantHere(id, 3, "?0", "")
	f.patch(id, 3, "de", "?0", "Upload-Length", "10").want(t, 204, "")
	f.wantHere(id, 5, "?0", "10")
	res := f.patch(id, 5, "fg", "?0", "Upload-Length", "11")
	res.want(t, 400, fault.UploadLength)
	if res.header.Get("Upload-Offset") != "5" || res.header.Get("Upload-Complete") != "?0" {
		t.Errorf("%v", res.header)
	}
	f.patch(id, 5, "fg", "?1").want(t, 400, fault.UploadLength)
	f.patch(id, 5, "fghijk", "?0").want(t, 400, fault.UploadLength)
	f.send("PATCH", f.putLink(id), io.MultiReader(strings.NewReader("fghijk")),
		"Content-Type", partialType, "Upload-Offset", "5", "Upload-Complete", "?0").want(t, 400, fault.UploadLength)
	f.wantHere(id, 5, "?0", "10")
	f.send("PATCH", f.putLink(id), io.MultiReader(strings.NewReader("fgh")),
		"Content-Type", partialType, "Upload-Offset", "5", "Upload-Complete", "?1").want(t, 400, fault.UploadLength)
	f.wantHere(id, 8, "?0", "10") // the bytes were accepted, but not as the end of the file
	f.patch(id, 8, "ij", "?1").want(t, 200, "")
	f.wantWhole(id, "abcdefghij")
}

func TestPartsWithoutTheirHeadersAreRefused(t *testing.T) {
	f := start(t)
	id := f.newUpload("text/plain")
	patch := func(headers ...string) response { return f.do("PATCH", f.putLink(id), "x", headers...) }
	patch("Upload-Offset", "0", "Upload-Complete", "?1").want(t, 415, fault.UnsupportedMediaType)
	patch("Content-Type", "text/plain", "Upload-Offset", "0", "Upload-Complete", "?1").want(t, 415, fault.UnsupportedMediaType)
	for _, headers := range [][]string{
		{"Upload-Offset", "0"},
		{"Upload-Complete", "?1"},
		{"Upload-Offset", "-1", "Upload-Complete", "?1"},
		{"Upload-Offset", "0.5", "Upload-Complete", "?1"},
		{"Upload-Offset", "0", "Upload-Complete", "1"},
		{"Upload-Offset", "0", "Upload-Complete", "?1", "Upload-Complete", "?1"},
		{"Upload-Offset", "0", "Upload-Complete", "?1", "Content-Digest", "sha-256=:AAAA:"},
		{"Upload-Offset", "0", "Upload-Complete", "?1", "Repr-Digest", "sha-256"},
	} {
		must.Equal(t, fmt.Sprint(headers), patch(append(headers, "Content-Type", partialType)...).status, 422)
	}
	patch("Content-Type", partialType, "Upload-Offset", "0", "Upload-Complete", "?1", "Content-Encoding", "gzip").want(t, 415, fault.UnsupportedMediaType)
	f.wantHere(id, 0, "?0", "")
	// A field with a value not allowed by the draft counts as absent: this is a plain
	// PUT.
	if res := f.do("PUT", f.putLink(id), "plain", "Upload-Complete", "yes"); res.status != 200 || res.header.Get("Upload-Complete") != "" {
		t.Errorf("status %d, %v", res.status, res.header)
	}
}

func digestOf(algorithm, content string) string {
	if algorithm == "sha-512" {
		sum := sha512.Sum512([]byte(content))
		return formatDigest(algorithm, sum[:])
	}
	sum := sha256.Sum256([]byte(content))
	return formatDigest(algorithm, sum[:])
}

func TestDigestsAreChecked(t *testing.T) {
	f := start(t, func(o *Options) { o.Block = 1 << 10 })
	whole := text(2 << 20)
	for _, algorithm := range []string{"sha-256", "sha-512"} {
		for _, field := range []string{"Content-Digest", "Repr-Digest"} {
			id := f.uploaded("before")
			f.do("PUT", f.putLink(id), whole, field, digestOf(algorithm, whole+"x")).want(t, 400, fault.DigestMismatch)
			f.wantWhole(id, "before")
			f.do("PUT", f.putLink(id), whole, field, "md5=:AAAA:, "+digestOf(algorithm, whole)).want(t, 200, "")
			f.wantWhole(id, whole)
		}
		id := f.newUpload("text/plain")
		half := len(whole) / 2
		f.do("PUT", f.putLink(id), whole[:half], "Upload-Complete", "?0", "Repr-Digest", digestOf(algorithm, whole)).want(t, 201, "")
		f.patch(id, half, whole[half:], "?0", "Content-Digest", digestOf(algorithm, whole)).want(t, 400, fault.DigestMismatch)
		f.wantHere(id, half, "?0", "")
		f.patch(id, half, whole[half:len(whole)-1]+"~", "?1").want(t, 400, fault.DigestMismatch)
		f.wantHere(id, half, "?0", strconv.Itoa(len(whole)))
		f.patch(id, half, whole[half:half+10], "?0", "Content-Digest", digestOf(algorithm, whole[half:half+10])).want(t, 204, "")
		res := f.patch(id, half+10, whole[half+10:], "?1")
		res.want(t, 200, "")
		must.Equal(t, "Repr-Digest", res.header.Get("Repr-Digest"), digestOf("sha-256", whole))
		f.wantWhole(id, whole)
	}
}

// TestInterimAnswers requests 104 responses like a client of the draft.
func TestInterimAnswers(t *testing.T) {
	f := start(t, func(o *Options) { o.Block = 64 << 10 })
	whole := text(4 << 20)
	for _, tt := range []struct {
		name    string
		headers []string
		want    bool
	}{
		{"of this version", []string{"Upload-Draft-Interop-Version", "8"}, true},
		{"of another version", []string{"Upload-Draft-Interop-Version", "6"}, false},
		{"of none", nil, false},
		{"behind a proxy", []string{"Upload-Draft-Interop-Version", "8", "X-Forwarded-For", "10.0.0.1"}, false},
	} {
		var locations, offsets []string
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if code == 104 {
				if h.Get("Location") != "" {
					locations = append(locations, h.Get("Location"))
				}
				if h.Get("Upload-Offset") != "" {
					offsets = append(offsets, h.Get("Upload-Offset"))
				}
			}
			return nil
		}}
		link := f.putLink(f.newUpload("text/plain"))
		res := f.traced(trace, "PUT", link, strings.NewReader(whole), append(tt.headers, "Upload-Complete", "?1")...)
		if res.status != 200 || res.header.Get("Upload-Draft-Interop-Version") != "" || res.header.Get("X-Content-Type-Options") == "" {
			t.Errorf("%s: status %d, %v", tt.name, res.status, res.header)
		}
		if !tt.want {
			if len(locations)+len(offsets) > 0 {
				t.Errorf("%s: 104 with %q, %q", tt.name, locations, offsets)
			}
			continue
		}
		if len(locations) != 1 || len(offsets) == 0 || len(offsets) > 8 {
			t.Fatalf("%s: 104 with %q, %q", tt.name, locations, offsets)
		}
		at, err := url.Parse(link)
		must.OK(t, err)
		if there, err := at.Parse(locations[0]); err != nil || there.String() != link {
			t.Errorf("Location %q leads to %v, %v", locations[0], there, err)
		}
	}
}

// TestLinkIsLimitedToItsUpload uses the link of one upload on the data of another.
func TestLinkIsLimitedToItsUpload(t *testing.T) {
	f := start(t)
	mine, other := f.newUpload("text/plain"), f.newUpload("text/plain")
	f.do("PUT", f.putLink(other), "abc", "Upload-Complete", "?0").want(t, 201, "")
	swapped := strings.Replace(f.putLink(mine), string(mine), string(other), 1)
	expired := f.server.URL + f.Link(app.Link{Kind: app.UploadPut, ID: string(other), Filename: "a", Expires: f.clock.Now().Add(time.Minute)})
	revoked := f.link(app.Link{Kind: app.UploadPut, ID: string(other), Filename: "a", Holder: "bob"})
	must.OK(t, f.RevokeLinks("bob"))
	f.clock.move(2 * time.Minute)
	download := f.getLink(other)
	for _, method := range []string{"HEAD", "PATCH", "DELETE", "PUT", "OPTIONS"} {
		for link, want := range map[string]fault.Code{swapped: fault.LinkInvalid, expired: fault.LinkExpired, revoked: fault.LinkInvalid, download: fault.LinkInvalid} {
			if method == "HEAD" && link == download {
				continue
			}
			res := f.do(method, link, "", "Upload-Complete", "?1", "Upload-Offset", "3", "Content-Type", partialType)
			status := 403
			switch {
			case method == "HEAD":
				want = ""
			case link == download && method != "PUT":
				status, want = 405, fault.MethodNotAllowed
			}
			res.want(t, status, want)
		}
	}
	f.wantHere(other, 3, "?0", "")
	f.wantHere(mine, 0, "?0", "")
}

// TestLostPartialFileRestartsUpload removes the file of a partial upload, as after a restore from a
// backup, or truncates it.
func TestLostPartialFileRestartsUpload(t *testing.T) {
	for name, lose := range map[string]func(string) error{
		"gone": os.Remove,
		"cut":  func(path string) error { return os.Truncate(path, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			id := f.newUpload("text/plain")
			f.do("PUT", f.putLink(id), "abc", "Upload-Complete", "?0").want(t, 201, "")
			names := f.names(partialDir)
			if len(names) != 1 {
				t.Fatalf("files %q", names)
			}
			must.OK(t, lose(f.path+"/"+partialDir+"/"+names[0]))
			f.patch(id, 3, "def", "?1").want(t, 409, fault.UploadOffset)
			f.wantHere(id, 0, "?0", "")
			f.patch(id, 0, "abcdef", "?1").want(t, 200, "")
			f.wantWhole(id, "abcdef")
		})
	}
}

// TestFullDiskKeepsWhatArrived fills the disk between two parts.
func TestFullDiskKeepsWhatArrived(t *testing.T) {
	f := start(t)
	unknown, known := f.newUpload("text/plain"), f.newUpload("text/plain")
	whole := text(1 << 20) // more than a block of the disk
	f.do("PUT", f.putLink(unknown), whole[:3], "Upload-Complete", "?0").want(t, 201, "")
	f.do("PUT", f.putLink(known), whole[:3], "Upload-Complete", "?0", "Upload-Length", "1048576").want(t, 201, "")
	f.options.Reserve = 1 << 60
	f.patch(unknown, 3, whole[3:], "?1").want(t, 507, fault.StorageFull)
	f.do("PUT", f.putLink(unknown), "x", "Upload-Complete", "?0").want(t, 507, fault.StorageFull)
	f.wantHere(unknown, 3, "?0", "")
	f.patch(known, 3, whole[3:9], "?0", "Content-Digest", "sha-256=:"+strings.Repeat("A", 43)+"=:").want(t, 400, fault.DigestMismatch)
	f.patch(known, 3, whole[3:], "?1").want(t, 200, "") // its space remained reserved, even after truncation
	f.wantWhole(known, whole)
	f.options.Reserve = 1
	f.patch(unknown, 3, whole[3:], "?1").want(t, 200, "")
	f.wantWhole(unknown, whole)
}

// limited is a Service with a quota. It checks that no file on disk has exceeded the
// quota before a new length is checked against it.
type limited struct {
	*rules
	f    *fixture
	most int64
}

func (s limited) BeginPart(ctx context.Context, id app.UploadID, size, _ int64) (int, *upload.Reservation, error) {
	if size > s.most {
		return 0, nil, fault.Errorf(fault.QuotaExceeded, "too long")
	}
	return s.rules.BeginPart(ctx, id, size, 0)
}

func (s limited) BeginPartial(ctx context.Context, id app.UploadID, p *app.Partial) error {
	for _, name := range s.f.names(partialDir) {
		if info, err := s.f.root.Stat(partialDir + "/" + name); err != nil || blocksOf(info) > s.most {
			s.f.t.Errorf("before the quota is asked, the file takes %d bytes, err %v", blocksOf(info), err)
		}
	}
	if p.Reserved() > s.most {
		return fault.Errorf(fault.QuotaExceeded, "too long")
	}
	return s.rules.BeginPartial(ctx, id, p)
}

func TestQuotaIsAskedBeforeSpaceIsReserved(t *testing.T) {
	f := start(t)
	f.server.Config.Handler = Handler(f.Dir, limited{f.rules, f, 1 << 20}, writeError)
	id := f.newUpload("text/plain")
	f.do("PUT", f.putLink(id), "abc", "Upload-Complete", "?0", "Upload-Length", "1048577").want(t, 403, fault.QuotaExceeded)
	f.do("PUT", f.putLink(id), "abc", "Upload-Complete", "?0").want(t, 201, "")
	f.patch(id, 3, "def", "?0", "Upload-Length", "1048577").want(t, 403, fault.QuotaExceeded)
	f.patch(id, 3, "def", "?1").want(t, 200, "")
	f.wantWhole(id, "abcdef")
}

// TestDeleteDuringLastPart deletes an upload while its last part is being
// received.
func TestDeleteDuringLastPart(t *testing.T) {
	f := start(t)
	id := f.newUpload("text/plain")
	f.do("PUT", f.putLink(id), "abc", "Upload-Complete", "?0").want(t, 201, "")
	body, rest := io.Pipe()
	answered := make(chan response, 1)
	go func() {
		answered <- f.send("PATCH", f.putLink(id), body, "Content-Type", partialType, "Upload-Offset", "3", "Upload-Complete", "?1", "Upload-Length", "6")
	}()
	must.Become(t, "the part has begun", func() bool {
		u, err := f.rules.Upload(t.Context(), id)
		return err == nil && u.Partial.Length != nil
	})
	generation := f.rules.uploads[id].Partial.Generation
	f.rules.mu.Lock()
	delete(f.rules.uploads, id)
	f.rules.mu.Unlock()
	must.OK(t, f.RemovePartial(id, generation))
	fmt.Fprint(rest, "def")
	_ = rest.Close()
	(<-answered).want(t, 404, fault.NotFound)
}
