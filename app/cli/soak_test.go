package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"molrun/app"
)

// mostMemory is how much the server may take whatever its clients do.
const mostMemory = 128 << 20

// TestSoak is a campaign of all that strains the server at once: an upload
// and a download of 10 GiB, 500 clients that trickle, bodies of 100 MB, headers
// of 64 KiB. Meanwhile another client lists its jobs; its latency is told.
// MOLRUN_SOAK=1 runs it, MOLRUN_SOAK=256MiB with files of that size.
func TestSoak(t *testing.T) {
	size := soakSize(t)
	s := startServer(t, serverOptions{})
	u := s.user("lab", "ann@lab.example")
	g := u.grant("large.bin")
	peak := s.watchMemory()
	listing := u.listMeanwhile()
	strain := u.strain()

	began := time.Now()
	r, err := http.NewRequestWithContext(t.Context(), "PUT", g.UploadURL, io.LimitReader(digits{}, size))
	must(t, err)
	r.ContentLength = size
	soakOK(t, r, nil)
	uploaded := time.Since(began)
	u.do("POST", "/upload/"+g.FileID+"/complete", fmt.Sprintf(`{"size":%d}`, size)).want(200)
	began = time.Now()
	r, err = http.NewRequestWithContext(t.Context(), "GET", g.DownloadURL, nil)
	must(t, err)
	if n := soakOK(t, r, io.Discard); n != size {
		t.Errorf("%d bytes arrive of %d", n, size)
	}
	downloaded := time.Since(began)

	requests := strain()
	latencies := listing()
	most := peak()
	slices.Sort(latencies)
	at := func(q float64) time.Duration {
		return latencies[int(q*float64(len(latencies)-1))].Round(time.Microsecond)
	}
	t.Logf("%d bytes up in %v, down in %v; %d requests beside; %d listings: p50 %v, p99 %v, most %v; peak RssAnon %.1f MiB",
		size, uploaded.Round(time.Millisecond), downloaded.Round(time.Millisecond), requests, len(latencies), at(0.5), at(0.99), at(1), float64(most)/(1<<20))
	if most > mostMemory {
		t.Errorf("the server took %d bytes, more than %d", most, mostMemory)
	}
}

// soakSize gives the size of the file, or skips the test.
func soakSize(t *testing.T) int64 {
	t.Helper()
	switch text := os.Getenv("MOLRUN_SOAK"); text {
	case "":
		t.Skip("skipped: a campaign of minutes and gigabytes runs with MOLRUN_SOAK=1")
	case "1":
	default:
		var size app.Bytes
		must(t, size.UnmarshalText([]byte(text)))
		return int64(size)
	}
	return 10 << 30
}

// soakOK sends a request, checks that it is answered 200 and gives how much
// is in the answer.
func soakOK(t *testing.T, r *http.Request, to io.Writer) int64 {
	t.Helper()
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	must(t, err)
	defer response.Body.Close()
	if to == nil {
		to = io.Discard
	}
	n, err := io.Copy(to, response.Body)
	must(t, err)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d", r.Method, response.StatusCode)
	}
	return n
}

// watchMemory samples the server's anonymous memory until the function that
// it gives is called, which tells the peak.
func (s *server) watchMemory() (peak func() int64) {
	stop, ended := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))
			if _, after, found := strings.Cut(string(status), "RssAnon:"); err == nil && found {
				var kB int64
				if _, err := fmt.Sscan(after, &kB); err == nil {
					most = max(most, kB<<10)
				}
			}
			select {
			case <-tick.C:
			case <-stop:
				ended <- most
				return
			}
		}
	}()
	return func() int64 { close(stop); return <-ended }
}

// listMeanwhile lists jobs again and again until the function that it gives
// is called, which tells how long each took.
func (u user) listMeanwhile() (latencies func() []time.Duration) {
	ctx, stop := context.WithCancel(u.t.Context())
	ended := make(chan []time.Duration)
	go func() {
		var all []time.Duration
		client := &http.Client{Timeout: patience}
		for ctx.Err() == nil {
			began := time.Now()
			r, _ := http.NewRequestWithContext(context.Background(), "GET", u.base+"/jobs", nil) // a URL that was used before
			r.Header.Set("x-api-key", u.key)
			response, err := client.Do(r)
			if err != nil || response.StatusCode != http.StatusOK {
				u.t.Errorf("a listing meanwhile: %v, %v", response, err)
				break
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			all = append(all, time.Since(began))
		}
		client.CloseIdleConnections()
		ended <- all
	}()
	return func() []time.Duration { stop(); return <-ended }
}

// strain sends what no client should, until the function that it gives is
// called, which tells how many requests that were.
func (u user) strain() (requests func() int64) {
	ctx, stop := context.WithCancel(u.t.Context())
	var wg sync.WaitGroup
	var sent atomic.Int64
	again := func(do func() error) {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := do(); err != nil && ctx.Err() == nil && !cut(err) {
					u.t.Error(err)
					return
				}
				sent.Add(1)
			}
		})
	}
	for i := range 500 {
		again(func() error { return u.trickle(ctx, i) })
	}
	for range 4 {
		again(func() error {
			r, err := u.request(ctx, "POST", "/submit-job", endless(100<<20))
			if err != nil {
				return err
			}
			return refusedAs(r, 413, 503)
		})
	}
	for range 4 {
		again(func() error {
			r, err := u.request(ctx, "GET", "/jobs", nil)
			if err != nil {
				return err
			}
			r.Header.Set("Cookie", strings.Repeat("x", 64<<10))
			return refusedAs(r, 422, 431)
		})
	}
	return func() int64 { stop(); wg.Wait(); return sent.Load() }
}

// cut reports whether the server ended a connection, which it may do to
// clients like these.
func cut(err error) bool {
	var broken *net.OpError
	return errors.As(err, &broken) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

func (u user) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, u.base+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("x-api-key", u.key)
	r.Header.Set("Content-Type", "application/json")
	return r, nil
}

// trickle sends a request a byte at a time: every other client a header that
// never ends, the rest a body, until the server has enough.
func (u user) trickle(ctx context.Context, i int) error {
	c, err := net.DialTimeout("tcp", strings.TrimPrefix(u.base, "http://"), patience)
	if err != nil {
		return err
	}
	defer c.Close()
	begin := "GET /jobs HTTP/1.1\r\nHost: x\r\nX-Slow: "
	if i%2 == 1 {
		begin = "POST /submit-job HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10000\r\nx-api-key: " + u.key + "\r\n\r\n"
	}
	if _, err := io.WriteString(c, begin); err != nil {
		return err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := io.WriteString(c, " "); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
