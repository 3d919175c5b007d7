package blobs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"molrun/app/test/must"
)

// sendfileChild is the environment variable that tells TestSendfileChild which download
// to run.
const sendfileChild = "BLOBS_TEST_SENDFILE"

// TestDownloadsUseSendfile runs one download of each kind under strace and adds up the
// bytes moved by sendfile.
func TestDownloadsUseSendfile(t *testing.T) {
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
			must.OK(t, err)
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

// sendfileBytes is the number of bytes of each download that must be moved by sendfile.
var sendfileBytes = map[string]int{"file": 10 << 20, "range": 9 << 20, "archive": 10<<20 + 100_000}

// TestSendfileChild is the traced process of TestDownloadsUseSendfile.
func TestSendfileChild(t *testing.T) {
	kind := os.Getenv(sendfileChild)
	if kind == "" {
		t.Skip("only run by TestDownloadsUseSendfile")
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

// get sends a GET on a connection with a small buffer, so that the server must wait for
// the reader.
func (f *fixture) get(link string) *bufio.Reader {
	f.t.Helper()
	conn, answer := f.dial("GET", link)
	must.OK(f.t, conn.SetReadBuffer(256<<10))
	return answer
}

// TestSlowDownloadCompletes reads so slowly that one piece takes longer than the idle
// timeout of a transfer.
func TestSlowDownloadCompletes(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789abcdef", 12<<20/16)
	slowly := func(idle time.Duration) error {
		f := start(t, func(o *Options) { o.Idle = idle })
		links := []string{f.getLink(f.stored(content)), f.archiveLink(f.result(map[string]string{"a": content}))}
		errs := make(chan error, len(links))
		for _, link := range links {
			answer := f.get(link)
			go func() {
				res, err := http.ReadResponse(answer, nil)
				for err == nil {
					_, err = io.CopyN(io.Discard, res.Body, 128<<10)
					time.Sleep(idle / 20) // sets the reader's pace; it does not wait for an event
				}
				errs <- err
			}()
		}
		return errors.Join(unlessEOF(<-errs), unlessEOF(<-errs))
	}
	err := slowly(time.Second)
	for idle := 4 * time.Second; err != nil && idle < must.Patience/4; idle *= 4 {
		err = slowly(idle) // a busy machine might have paused the reader
	}
	must.OK(t, err)
}

// unlessEOF returns err, or nil for io.EOF.
func unlessEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

func TestStalledDownloadIsAborted(t *testing.T) {
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
	content := strings.Repeat("x", 32<<20)
	f.get(f.getLink(f.stored(content))) // the client never reads the response
	<-ended
	f.get(f.archiveLink(f.result(map[string]string{"a": content})))
	<-ended
}

type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }
