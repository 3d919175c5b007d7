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

// pageAfter returns the path of the page at a cursor.
func pageAfter(cursor string) string { return firstPage + "&startKey=" + url.QueryEscape(cursor) }

// collectCursors walks the whole listing and keeps the cursors of at least as
// many pages, evenly spaced. A listing of one page has none.
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

// randomPages returns requests for random pages, or for the first page if there
// is no other.
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

// A person is a client that asks at a steady pace, whether it is answered or not, so
// that no wait hides another. It runs as a process of its own before all others, since
// it stands for somebody at another machine.

// personSpec is what a person is told, as JSON on its standard input. It stops when
// that ends.
type personSpec struct {
	Address  string
	Requests [][]byte // sent in turn
	Every    time.Duration
}

// reply is an answer to a person.
type reply struct {
	Request int   // its number in the spec
	Sent    int64 // Unix time in nanoseconds
	Took    time.Duration
	CPU     time.Duration // that the person has used so far
	Err     string        `json:",omitempty"`
}

// askSteadily is the process of a person. It prints its replies as JSON.
func askSteadily(ctx context.Context, in io.Reader, out io.Writer) error {
	var spec personSpec
	told := json.NewDecoder(in)
	if err := told.Decode(&spec); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in) // until the end
		stop()
	}()
	p := &person{spec: spec}
	var asking sync.WaitGroup
	slots := make(chan struct{}, mostAsked)
	next := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		due := next
		slots <- struct{}{}
		asking.Go(func() {
			p.ask(n%len(spec.Requests), due)
			<-slots
		})
		next = next.Add(spec.Every)
		_ = pause(ctx, time.Until(next)) // the loop ends with the context
	}
	asking.Wait()
	return json.NewEncoder(out).Encode(p.replies)
}

type person struct {
	spec personSpec

	mu      sync.Mutex
	free    []*conn // connections on which nothing is asked
	replies []reply
}

// Requests of a person pile up where the machine stands still for a moment, until the key
// has too many of them in progress, or the service. Those that are refused then are sent again: the wait
// counts.
const (
	mostAsked  = 4000 // at once, each on a connection of its own
	askAgain   = 10 * time.Millisecond
	askAtMost  = 1000 // times
	tooManyNow = "status 429"
)

// askPatiently asks, and again on a new connection as long as the answer is one of the refusals, or
// there is none: a server to which many connect hangs up on those that have been silent the longest.
// What asks must notice if it is heard twice.
func askPatiently(c **conn, address string, ask func() error, refusals ...string) (err error) {
	for range askAtMost {
		refused := func(refusal string) bool { return strings.Contains(err.Error(), refusal) }
		if err = ask(); err == nil || !hungUp(err) && !slices.ContainsFunc(refusals, refused) {
			return err
		}
		(*c).close()
		time.Sleep(askAgain)
		again, err := dial(address)
		if err != nil {
			return err
		}
		*c = again
	}
	return err
}

// hungUp reports whether the server has closed the connection before it answered.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// ask sends a request, which was due at a time, on a connection of its own.
func (p *person) ask(request int, due time.Time) {
	c, err := p.take()
	r := reply{Request: request, Sent: due.UnixNano()}
	if err == nil {
		err = askPatiently(&c, p.spec.Address, func() error {
			_, err := c.do(p.spec.Requests[request])
			return err
		}, tooManyNow, busyNow)
	}
	r.Took = time.Since(due)
	r.CPU = ownCPU()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		r.Err = err.Error()
	} else {
		p.free = append(p.free, c)
	}
	p.replies = append(p.replies, r)
}

// take returns a connection, the one that was used last.
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

// ownCPU returns the CPU time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0 // fails only for other arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
