package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"molrun/app/base/unit"
	"molrun/app/test/must"
)

// Limits for the server's memory and for the latency of ordinary requests under overload.
const (
	mostMemory  = 128 << 20
	mostLatency = 2 * time.Second
)

// TestSoak overloads the server with an upload and a download of 10 GiB, 500 slow
// clients, bodies of 100 MB and headers of 64 KiB, while another client lists its jobs.
// MOLRUN_SOAK=10GiB (`make soak`) sets the size of the file. Otherwise the file is small,
// and latency and memory outside the heap are not checked, because they depend on the
// load of the test machine and on the race detector.
func TestSoak(t *testing.T) {
	size, full := soakSize(t)
	s := startServer(t, serverOptions{})
	u := s.user("lab", "ann@lab.example")
	g := u.grant("large.bin")
	peak := s.watch()
	listing := u.listMeanwhile()
	stopOverload := u.overload()
	s.eventually("all slow clients are connected", func() bool { return s.openFiles() > slowClients })

	began := time.Now()
	r, err := http.NewRequestWithContext(t.Context(), "PUT", g.UploadURL, io.LimitReader(digits{}, size))
	must.OK(t, err)
	r.ContentLength = size
	soakOK(t, r)
	uploaded := time.Since(began)
	u.do("POST", "/upload/"+g.FileID+"/complete", fmt.Sprintf(`{"size":%d}`, size)).want(200)
	began = time.Now()
	r, err = http.NewRequestWithContext(t.Context(), "GET", g.DownloadURL, nil)
	must.OK(t, err)
	must.Equal(t, "downloaded", soakOK(t, r), size)
	downloaded := time.Since(began)

	answers := stopOverload()
	latencies := listing()
	most := peak()
	heap := s.metric("go_memstats_heap_sys_bytes") // never decreases
	for status, want := range map[int]string{413: "a body of 100 MB", 422: "a header of 64 KiB"} {
		if answers[status] == 0 {
			t.Errorf("%s never got status %d: %v", want, status, answers)
		}
	}
	p99 := quantile(latencies, 0.99)
	t.Logf("%d bytes up in %v, down in %v; other responses by status, 0 if cut off: %v; %d listings: p50 %v, p99 %v, max %v; peak RssAnon %.1f MiB, heap %.1f MiB",
		size, uploaded.Round(time.Millisecond), downloaded.Round(time.Millisecond), answers, len(latencies),
		quantile(latencies, 0.5), p99, quantile(latencies, 1), float64(most)/(1<<20), heap/(1<<20))
	if heap > mostMemory {
		t.Errorf("heap of %.0f bytes, want at most %d", heap, mostMemory)
	}
	if full && most > mostMemory {
		t.Errorf("memory of %d bytes, want at most %d", most, mostMemory)
	}
	if full && p99 > mostLatency {
		t.Errorf("p99 of the listings is %v, want at most %v", p99, mostLatency)
	}
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))].Round(time.Microsecond)
}

// soakSize returns the size of the file, and whether this is the full soak test.
func soakSize(t *testing.T) (size int64, full bool) {
	t.Helper()
	text := os.Getenv("MOLRUN_SOAK")
	if text == "" {
		return 16 << 20, false
	}
	var bytes unit.Bytes
	must.OK(t, bytes.UnmarshalText([]byte(text)))
	return int64(bytes), true
}

// soakOK sends a request, which must succeed, and returns the length of the
// response body.
func soakOK(t *testing.T, r *http.Request) int64 {
	t.Helper()
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	must.OK(t, err)
	defer response.Body.Close()
	n, err := io.Copy(io.Discard, response.Body)
	must.OK(t, err)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d", r.Method, response.StatusCode)
	}
	return n
}

// watch samples the server's anonymous memory until peak is called, which returns the
// highest value.
func (s *instance) watch() (peak func() int64) {
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

// listMeanwhile lists jobs repeatedly until latencies is called, which returns the
// latencies.
func (u user) listMeanwhile() (latencies func() []time.Duration) {
	ctx, stop := context.WithCancel(u.t.Context())
	ended := make(chan []time.Duration)
	go func() {
		var all []time.Duration
		client := &http.Client{Timeout: patience}
		for ctx.Err() == nil {
			began := time.Now()
			r, _ := http.NewRequestWithContext(context.Background(), "GET", u.base+"/jobs", nil) // the URL is valid
			r.Header.Set("x-api-key", u.key)
			response, err := client.Do(r)
			if err != nil || response.StatusCode != http.StatusOK {
				u.t.Errorf("listing under load: %v, %v", response, err)
				break
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			all = append(all, time.Since(began))
		}
		client.CloseIdleConnections()
		ended <- all
	}()
	return func() []time.Duration {
		stop()
		all := <-ended
		slices.Sort(all)
		return all
	}
}

// slowClients is the number of clients that send one byte at a time.
const slowClients = 500

// overload sends slow and oversized requests until answers is called, which returns the
// number of responses by status. Status 0 means no response.
func (u user) overload() (answers func() map[int]int) {
	ctx, stop := context.WithCancel(u.t.Context())
	var wg sync.WaitGroup
	var mu sync.Mutex
	counts := map[int]int{}
	again := func(do func() (status int, err error)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				status, err := do()
				if ctx.Err() == nil && err != nil && !cut(err) {
					u.t.Error(err)
					return
				}
				mu.Lock()
				counts[status]++
				mu.Unlock()
			}
		})
	}
	for i := range slowClients {
		again(func() (int, error) { return 0, u.sendSlowly(ctx, i) })
	}
	for range 4 {
		again(func() (int, error) { return u.refused(ctx, "POST", "/submit-job", endless(100<<20), "", 413, 503) })
		again(func() (int, error) {
			return u.refused(ctx, "GET", "/jobs", nil, strings.Repeat("x", 64<<10), 422)
		})
	}
	return func() map[int]int { stop(); wg.Wait(); return counts }
}

// refused sends a request that the server must reject with one of the given statuses or
// by closing the connection.
func (u user) refused(ctx context.Context, method, path string, body io.Reader, cookie string, statuses ...int) (int, error) {
	r, err := http.NewRequestWithContext(ctx, method, u.base+path, body)
	if err != nil {
		return 0, err
	}
	r.Header.Set("x-api-key", u.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Cookie", cookie)
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if !slices.Contains(statuses, response.StatusCode) {
		return 0, fmt.Errorf("%s %s: status %d, want one of %v", method, path, response.StatusCode, statuses)
	}
	return response.StatusCode, nil
}

// cut reports whether the server closed the connection, as it may for such clients.
func cut(err error) bool {
	var broken *net.OpError
	return errors.As(err, &broken) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// sendSlowly sends a request one byte at a time until the server closes the connection.
// Even-numbered and odd-numbered clients differ: one half sends an endless header, the
// other a body.
func (u user) sendSlowly(ctx context.Context, i int) error {
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

// openFiles returns the number of files that the server has open.
func (s *instance) openFiles() int {
	s.t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.process.Process.Pid))
	must.OK(s.t, err)
	return len(entries)
}

// metric returns a value from GET /metrics.
func (s *instance) metric(name string) float64 {
	s.t.Helper()
	text := user{s, ""}.do("GET", "/metrics", nil).want(200).body
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text)
	if found == nil {
		s.t.Fatalf("no metric %s", name)
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	must.OK(s.t, err)
	return value
}

// endless returns the first n bytes of an endless JSON string.
func endless(n int64) io.Reader {
	return io.LimitReader(io.MultiReader(strings.NewReader(`{"jobName":"`), digits{}), n)
}

// digits is an endless stream of the digit 0.
type digits struct{}

func (digits) Read(p []byte) (int, error) { return copy(p, zeroDigits), nil }

// zeroDigits is copied in large blocks, because many small writes are slow under the race
// detector.
var zeroDigits = strings.Repeat("0", 32<<10)
