package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"molrun/app/base/unit"
	"molrun/app/test/must"
)

// noise is a file of any size that is not stored: its bytes are computed from their
// positions.
type noise struct {
	at, size int64
	page     [1 << 20]byte
	ready    int64 // number of the current page, plus one
}

func (n *noise) Read(p []byte) (int, error) {
	if n.at >= n.size {
		return 0, io.EOF
	}
	if want := n.at >> 20; n.ready != want+1 {
		seed := [32]byte{1: byte(want), 2: byte(want >> 8), 3: byte(want >> 16)}
		if _, err := rand.NewChaCha8(seed).Read(n.page[:]); err != nil {
			return 0, err
		}
		n.ready = want + 1
	}
	k := copy(p[:min(int64(len(p)), n.size-n.at)], n.page[n.at&(1<<20-1):])
	n.at += int64(k)
	return k, nil
}

// breaking is a request body that pauses at an offset until the test has caused an
// interruption, and then returns an error.
type breaking struct {
	noise
	place  int64
	there  chan int64    // receives the offset of the pause
	caused chan struct{} // closed once the test has caused the interruption
}

var errBroken = errors.New("the test broke the connection")

func (b *breaking) Read(p []byte) (int, error) {
	if b.place > 0 && b.at >= b.place {
		b.there <- b.at
		<-b.caused
		return 0, errBroken
	}
	return b.noise.Read(p)
}

// uploadSize returns the size set by MOLRUN_UPLOAD, for a long run, or a small default.
func uploadSize(t *testing.T) int64 {
	text := os.Getenv("MOLRUN_UPLOAD")
	if text == "" {
		return 48 << 20
	}
	var size unit.Bytes
	must.OK(t, size.UnmarshalText([]byte(text)))
	return int64(size)
}

// blockSize is the maximum number of bytes that must be sent again after an interruption:
// the 8 MiB that a crash can lose, and the data in the buffers of connections.
const blockSize = 8<<20 + 12<<20

// TestUploadSurvivesFiveBreaks interrupts the upload of a large file five times: by
// resetting connections, killing and stopping the server, and killing a proxy.
func TestUploadSurvivesFiveBreaks(t *testing.T) {
	t.Parallel()
	for _, through := range []string{"directly", "nginx"} {
		t.Run(through, func(t *testing.T) {
			t.Parallel()
			server, public := freeAddress(t), freeAddress(t)
			o := serverOptions{config: "[stop]\nrequests = \"1s\"\n", flags: []string{"--listen", server}}
			if through == "nginx" {
				o.config = fmt.Sprintf("public_url = \"https://%s/molrun\"\n%s[proxy]\ntrusted = \"127.0.0.1\"\n", public, o.config)
			}
			s := startServer(t, o)
			u := s.user("lab", "ann@lab.example")
			g := u.grant("large.bin")
			restart := func(end func()) func() {
				return func() { end(); s.start() }
			}
			nothing := func() {}
			causes := []func(){nothing, restart(s.kill), nothing, restart(s.stop), restart(s.kill)}
			if through == "nginx" {
				direct := s.base
				stop := s.nginx("/molrun/", public)
				proxyAgain := func() { stop(); s.base = direct; stop = s.nginx("/molrun/", public) }
				causes = []func(){proxyAgain, nothing, func() { s.kill(); s.start() }, proxyAgain, nothing}
			}
			s.sendBroken(g.UploadURL, causes)
			s.base = "http://" + server
			s.http = checkedClient(t)
			size := uploadSize(t)
			u.do("POST", "/upload/"+g.FileID+"/complete", fmt.Sprintf(`{"size":%d}`, size)).want(200)
			sum, whole := sha256.New(), &noise{size: size}
			_, err := io.Copy(sum, whole)
			must.OK(t, err)
			var page struct{ Files []struct{ SHA256 string } }
			u.do("GET", "/files?sha256="+hex.EncodeToString(sum.Sum(nil)), nil).want(200).into(&page)
			if len(page.Files) != 1 {
				t.Errorf("the file has another digest than was sent: %+v", page)
			}
			if left, err := os.ReadDir(filepath.Join(s.data(), "uploads", "partial")); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// sendBroken sends the file with one interruption for each cause, and resumes each time
// at the offset that the server reports.
func (s *instance) sendBroken(link string, causes []func()) {
	s.t.Helper()
	size := uploadSize(s.t)
	for n, cause := range causes {
		sending := &breaking{
			noise: noise{at: s.offsetOf(link), size: size}, place: size * int64(n+1) / int64(len(causes)+1),
			there: make(chan int64, 1), caused: make(chan struct{}),
		}
		sent := s.breakAt(link, sending, cause)
		again := sent - s.offsetOf(link)
		s.t.Logf("break %d after %d bytes: %d of them have to be sent again", n, sent, again)
		if again < 0 || again > blockSize {
			s.t.Errorf("break %d: %d bytes have to be sent again", n, again)
		}
	}
	at := s.offsetOf(link)
	response, err := (&http.Client{Transport: s.http.Transport}).Do(s.restOf(link, at, &noise{at: at, size: size}))
	must.OK(s.t, err)
	if text := body(s.t, response); response.StatusCode != 200 || response.Header.Get("Upload-Complete") != "?1" {
		s.t.Fatalf("the last part: %d %s", response.StatusCode, text)
	}
}

// restOf returns the request that sends the rest of the file from an offset.
func (s *instance) restOf(link string, at int64, rest io.Reader) *http.Request {
	r, err := http.NewRequestWithContext(s.t.Context(), "PATCH", link, rest)
	must.OK(s.t, err)
	r.ContentLength = uploadSize(s.t) - at
	for name, value := range map[string]string{"Content-Type": "application/partial-upload", "Upload-Offset": strconv.FormatInt(at, 10), "Upload-Complete": "?1"} {
		r.Header.Set(name, value)
	}
	return r
}

// breakAt sends a body up to the offset place, causes an interruption there, and returns
// the offset.
func (s *instance) breakAt(link string, body *breaking, cause func()) int64 {
	s.t.Helper()
	client, request := &http.Client{Transport: s.http.Transport}, s.restOf(link, body.at, body)
	ended := make(chan int, 1)
	go func() { // ends at the latest when caused is closed
		status := http.StatusBadGateway // as nginx responds when the server is down
		if response, err := client.Do(request); err == nil {
			status = response.StatusCode
			response.Body.Close()
		}
		ended <- status
	}()
	select {
	case place := <-body.there:
		cause()
		close(body.caused)
		if status := <-ended; status != http.StatusBadGateway {
			s.t.Fatalf("the break after %d bytes was none: %d", place, status)
		}
		return place
	case status := <-ended:
		close(body.caused)
		s.t.Fatalf("the server answered before the break: %d", status)
	}
	return 0
}

// offsetOf returns the offset that the server reports, once it responds.
func (s *instance) offsetOf(link string) (offset int64) {
	s.t.Helper()
	s.eventually("the server reports the offset", func() bool {
		response, err := (&http.Client{Transport: s.http.Transport, Timeout: patience}).Head(link)
		if err != nil {
			return false
		}
		response.Body.Close()
		offset, err = strconv.ParseInt(response.Header.Get("Upload-Offset"), 10, 64)
		return err == nil && response.StatusCode == http.StatusNoContent
	})
	return offset
}

// TestCheckAndBackupKnowParts checks, backs up and restores a data directory with a
// partial upload.
func TestCheckAndBackupKnowParts(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{})
	u := s.user("lab", "ann@lab.example")
	g := u.grant("a.txt")
	u.do("PUT", g.UploadURL, strings.NewReader("abc"), "Upload-Complete", "?0").want(201)
	backup := filepath.Join(t.TempDir(), "backup")
	s.ok("backup", backup)
	s.stop()
	for _, args := range [][]string{{"check", "--deep"}, {"check"}} {
		if out := s.ok(args...); strings.Contains(out, "partial") {
			t.Errorf("%v: %s", args, out)
		}
	}
	must.OK(t, os.RemoveAll(filepath.Join(s.data(), "uploads", "partial"))) // as in a restored backup
	if out := s.ok("check", "--deep"); strings.Contains(out, "partial") {
		t.Errorf("check without the parts: %s", out)
	}
	s.start()
	link, err := url.Parse(g.UploadURL)
	must.OK(t, err)
	again := s.base + link.RequestURI()
	must.Equal(t, "the offset without the file", s.offsetOf(again), 0)
	u.base = s.base
	u.do("PUT", again, strings.NewReader("abcdef"), "Upload-Complete", "?1").want(200)
}

// TestCurlGoesOnWithAnUpload follows the documentation, with the real curl.
func TestCurlGoesOnWithAnUpload(t *testing.T) {
	t.Parallel()
	curl := must.Installed(t, "curl")
	s := plain(t)
	u := s.user("lab", "ann@lab.example")
	g := u.grant("a.bin")
	file := filepath.Join(t.TempDir(), "a.bin")
	data, err := io.ReadAll(&noise{size: 3 << 20})
	must.OK(t, err)
	must.OK(t, os.WriteFile(file, data, 0o600))
	u.do("PUT", g.UploadURL, bytes.NewReader(data[:1<<20]), "Upload-Complete", "?0").want(201)
	script := readme(t, "run: resume")
	shell := exec.Command("bash", "-euo", "pipefail", "-c", script)
	shell.Env = []string{"PATH=" + os.Getenv("PATH") + ":" + filepath.Dir(curl), "FILE=" + file, "URL=" + g.UploadURL}
	out, err := shell.CombinedOutput()
	sum := sha256.Sum256(data)
	if err != nil || !strings.Contains(string(out), hex.EncodeToString(sum[:])) {
		t.Errorf("%v: %s", err, out)
	}
}
