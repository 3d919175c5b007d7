package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const firstPage = "/jobs?limit=50&organization=true"

// pageAfter returns the path of the page that starts at a cursor.
func pageAfter(cursor string) string { return firstPage + "&startKey=" + url.QueryEscape(cursor) }

// collectCursors walks the whole listing and keeps at least the given number of page
// cursors, evenly spaced, or all if there are fewer. A listing of one page has none.
func (s *server) collectCursors(least int) error {
	c, err := dial(s.address)
	if err != nil {
		return err
	}
	defer c.close()
	var all []string
	for path := firstPage; ; {
		body, err := c.do(s.get(path))
		if err != nil {
			return err
		}
		cursor, err := cursorOf(body)
		if err != nil {
			return err
		}
		if cursor == "" {
			break
		}
		all = append(all, cursor)
		path = pageAfter(cursor)
	}
	apart := max(1, len(all)/least)
	for i := 0; i < len(all); i += apart {
		s.cursors = append(s.cursors, all[i])
	}
	return nil
}

// cursorOf finds the cursor at the end of a page without decoding the page.
func cursorOf(body []byte) (string, error) {
	var page struct{ StartKey string }
	tail := body[max(0, len(body)-200):]
	const member = `],"startKey":`
	for i := len(tail) - len(member); i >= 0; i-- {
		if string(tail[i:i+len(member)]) == member {
			err := json.Unmarshal(append([]byte(`{"startKey":`), tail[i+len(member):]...), &page)
			return page.StartKey, err
		}
	}
	return "", nil
}

// randomPages returns requests for pages in random order, or for the first page if there
// is only one.
func (s *server) randomPages() [][]byte {
	if len(s.cursors) == 0 {
		return [][]byte{s.get(firstPage)}
	}
	var requests [][]byte
	for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(len(s.cursors)) {
		requests = append(requests, s.get(pageAfter(s.cursors[i])))
	}
	return requests
}

// filter is a combination of filters of a listing.
type filter struct{ user, algorithm, status string }

func (f filter) path() string {
	path := "/jobs?limit=50"
	if f.user == "" {
		path += "&organization=true"
	}
	for name, value := range map[string]string{"jobEmail": f.user, "algorithm": f.algorithm, "status": f.status} {
		if value != "" {
			path += "&" + name + "=" + url.QueryEscape(value)
		}
	}
	return path
}

// A person is a client that sends requests at a steady pace without waiting for
// responses, so that a slow response does not delay the next request and hide its
// latency. It runs in its own process at the highest priority, since it stands for a user
// at another machine.

// personSpec configures a person, as JSON on its standard input. The person stops at the
// end of its input.
type personSpec struct {
	Address  string
	Requests [][]byte // sent in turn
	Every    time.Duration
}

// reply is the response to one request of a person.
type reply struct {
	Request int   // index in the spec
	Sent    int64 // Unix time in nanoseconds
	Took    time.Duration
	CPU     time.Duration // used by the person so far
	Err     string        `json:",omitempty"`
}

// runPerson is the main function of a person process. It prints its replies as JSON.
func runPerson(ctx context.Context, in io.Reader, out io.Writer) error {
	var spec personSpec
	told := json.NewDecoder(in)
	if err := told.Decode(&spec); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in) // blocks until the end of the input
		stop()
	}()
	p := &person{spec: spec}
	var asking sync.WaitGroup
	slots := make(chan struct{}, maxConcurrent)
	next := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		due := next
		slots <- struct{}{}
		asking.Go(func() {
			p.ask(n%len(spec.Requests), due)
			<-slots
		})
		next = next.Add(spec.Every)
		_ = pause(ctx, time.Until(next)) // on cancellation, the loop condition ends the loop
	}
	asking.Wait()
	return json.NewEncoder(out).Encode(p.replies)
}

type person struct {
	spec personSpec

	mu      sync.Mutex
	free    []*conn // idle connections
	replies []reply
}

// Requests of a person pile up when the machine stalls, until the key or the service has
// too many in progress. Requests rejected for that reason are sent again, and the waiting
// time counts.
const (
	maxConcurrent = 4000 // requests in progress, each on its own connection
	retryPause    = 10 * time.Millisecond
	maxRetries    = 1000
	tooManyNow    = "status 429"
)

// withRetries calls ask, and retries on a new connection while ask fails with one of the
// refusals or the server hangs up: a server with many connections closes those that have
// been idle the longest. ask must detect when its request is processed twice.
func withRetries(c **conn, address string, ask func() error, refusals ...string) (err error) {
	for range maxRetries {
		refused := func(refusal string) bool { return strings.Contains(err.Error(), refusal) }
		if err = ask(); err == nil || !hungUp(err) && !slices.ContainsFunc(refusals, refused) {
			return err
		}
		(*c).close()
		time.Sleep(retryPause)
		again, err := dial(address)
		if err != nil {
			return err
		}
		*c = again
	}
	return err
}

// hungUp reports whether the server closed the connection before it responded.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// ask sends a request on an idle or new connection. The latency counts from the time at
// which the request was due.
func (p *person) ask(request int, due time.Time) {
	c, err := p.take()
	r := reply{Request: request, Sent: due.UnixNano()}
	if err == nil {
		err = withRetries(&c, p.spec.Address, func() error {
			_, err := c.do(p.spec.Requests[request])
			return err
		}, tooManyNow, busyNow)
	}
	r.Took = time.Since(due)
	r.CPU = processCPU()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		r.Err = err.Error()
	} else {
		p.free = append(p.free, c)
	}
	p.replies = append(p.replies, r)
}

// take returns the most recently used idle connection, or a new one.
func (p *person) take() (*conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.free) - 1; last >= 0 {
		c := p.free[last]
		p.free = p.free[:last]
		return c, nil
	}
	return dial(p.spec.Address)
}

// processCPU returns the CPU time of this process.
func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0 // cannot fail with these arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
