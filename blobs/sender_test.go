package blobs

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app"
)

// sendfileChild, when set, makes TestSendfileChild serve one download.
const sendfileChild = "BLOBS_TEST_SENDFILE"

// TestKernelCopiesDownloads runs one download of each kind under strace and
// adds up what sendfile moved.
func TestKernelCopiesDownloads(t *testing.T) {
	t.Parallel()
	if os.Getenv(sendfileChild) != "" {
		t.Skip("this is the traced process")
	}
	if err := exec.Command("strace", "-qq", "-e", "trace=none", "true").Run(); err != nil {
		t.Skipf("strace can't trace here: %v", err)
	}
	returned := regexp.MustCompile(`sendfile\(.*\)\s+= (\d+)|sendfile resumed.*= (\d+)`)
	for _, kind := range []string{"file", "range", "archive"} {
		t.Run(kind, func(t *testing.T) {
			trace := filepath.Join(t.TempDir(), "trace")
			cmd := exec.Command("strace", "-f", "-qq", "-e", "trace=sendfile", "-e", "signal=none", "-o", trace,
				os.Args[0], "-test.run=^TestSendfileChild$", "-test.v")
			cmd.Env = append(os.Environ(), sendfileChild+"="+kind)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			data, err := os.ReadFile(trace)
			if err != nil {
				t.Fatal(err)
			}
			var moved int
			for _, m := range returned.FindAllStringSubmatch(string(data), -1) {
				n, _ := strconv.Atoi(m[1] + m[2])
				moved += n
			}
			if want := sendfileBytes[kind]; moved != want {
				t.Errorf("sendfile moved %d bytes, want %d; trace:\n%.2000s", moved, want, data)
			}
		})
	}
}

// sendfileBytes is how much of each download only the kernel should touch.
var sendfileBytes = map[string]int{"file": 10 << 20, "range": 9 << 20, "archive": 10<<20 + 100_000}

// TestSendfileChild is the traced process of TestKernelCopiesDownloads.
func TestSendfileChild(t *testing.T) {
	kind := os.Getenv(sendfileChild)
	if kind == "" {
		t.Skip("only run by TestKernelCopiesDownloads")
	}
	f := start(t)
	content := strings.Repeat("0123456789abcdef", 10<<20/16)
	id := f.stored(content)
	var res response
	switch kind {
	case "file":
		res = f.do("GET", f.getLink(id), "")
	case "range":
		res = f.do("GET", f.getLink(id), "", "Range", fmt.Sprintf("bytes=5-%d", 5+9<<20-1))
	case "archive":
		job := f.result(map[string]string{"a": content, "b": "small", "c": content[:100_000]})
		res = f.do("GET", f.archiveLink(job), "")
	}
	if res.status/100 != 2 || len(res.body) < sendfileBytes[kind] {
		t.Errorf("status %d, %d bytes", res.status, len(res.body))
	}
}

// get sends a GET on a connection of its own, whose small buffer makes the
// server wait for the reader.
func (f *fixture) get(link string) (*net.TCPConn, *bufio.Reader) {
	f.t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		f.t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	tcp := conn.(*net.TCPConn)
	if err := tcp.SetReadBuffer(256 << 10); err != nil {
		f.t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", u.RequestURI(), u.Host)
	return tcp, bufio.NewReader(conn)
}

// TestSlowDownloadIsWaitedFor reads so slowly that one piece takes longer than
// a transfer may stand still.
func TestSlowDownloadIsWaitedFor(t *testing.T) {
	t.Parallel()
	const idle = 500 * time.Millisecond
	f := start(t, func(o *Options) { o.Idle = idle })
	content := strings.Repeat("0123456789abcdef", 12<<20/16)
	links := map[string]string{
		"file":    f.getLink(f.stored(content)),
		"archive": f.archiveLink(f.result(map[string]string{"a": content})),
	}
	var wg sync.WaitGroup
	for name, link := range links {
		_, r := f.get(link)
		wg.Go(func() {
			began := time.Now()
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			var n int64
			for err == nil {
				var more int64
				more, err = io.CopyN(io.Discard, res.Body, 128<<10)
				n += more
				time.Sleep(idle / 20) // the reader's pace, not a signal
			}
			if took := time.Since(began); err != io.EOF || n != res.ContentLength || took < 2*idle {
				t.Errorf("%s: %d of %d bytes in %v, err %v", name, n, res.ContentLength, took, err)
			}
		})
	}
	wg.Wait()
}

func TestStalledDownloadIsCut(t *testing.T) {
	ended := make(chan struct{}, 1)
	f := start(t, func(o *Options) {
		o.Idle = 20 * time.Millisecond
		o.Log = zerolog.New(writerFunc(func(p []byte) (int, error) {
			if strings.Contains(string(p), `"method":"GET"`) {
				ended <- struct{}{}
			}
			return len(p), nil
		}))
	})
	f.get(f.getLink(f.stored(strings.Repeat("x", 32<<20)))) // and reads nothing
	<-ended
	job := f.result(map[string]string{"a": strings.Repeat("x", 32<<20)})
	f.get(f.archiveLink(job))
	<-ended
}

type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// TestServiceHasTheRules keeps the handler's interface within the service's.
func TestServiceHasTheRules(*testing.T) {
	var _ Service = (*app.Service)(nil)
}
