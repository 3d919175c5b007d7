package delivery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"molrun/app"
	"molrun/app/base/sortid"
	"molrun/app/base/unit"
	"molrun/app/job/delivery"
	"molrun/app/job/notice"
	"molrun/app/test/must"
	"molrun/storage"
)

// crowd is a set of receivers, some of them slow, and the messages sent to them. It runs
// in a synctest bubble, where waiting takes no time.
type crowd struct {
	t     *testing.T
	store *storage.Store

	mu     sync.Mutex
	hooks  map[string]*notice.Hook // by host
	now    map[string]int          // attempts in progress, by organization and "all"
	most   map[string]int
	began  map[string][]string // messages by host, in the order of attempts
	order  []string            // hosts, in the order of attempts
	done   map[string]int      // messages accepted
	doneAt map[string]time.Time
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	store, err := storage.Open(filepath.Join(t.TempDir(), "jobs.db"), storage.Options{Fatal: func(err error) { t.Error(err) }, AnyFileSystem: true})
	must.OK(t, err)
	t.Cleanup(func() {
		must.OK(t, store.Check(context.Background()))
		must.OK(t, store.Close())
	})
	return &crowd{
		t: t, store: store, hooks: map[string]*notice.Hook{}, now: map[string]int{}, most: map[string]int{},
		began: map[string][]string{}, done: map[string]int{}, doneAt: map[string]time.Time{},
	}
}

// The first label of a receiver's host determines how it behaves.
const (
	good    = 50 * time.Millisecond
	slow    = 5 * time.Second
	hanging = 15 * time.Second
)

func (c *crowd) takes(host string) time.Duration {
	switch kind, _, _ := strings.Cut(host, "."); {
	case strings.HasPrefix(kind, "slow"):
		return slow
	case strings.HasPrefix(kind, "hanging"):
		return hanging
	}
	return good
}

// queue adds deliveries to an organization's hook or, unless asHook is set, deliveries
// requested by submissions.
func (c *crowd) queue(organization, target string, asHook bool, n int) {
	c.t.Helper()
	at := time.Now()
	hook := ""
	must.OK(c.t, c.store.Update(c.t.Context(), func(tx app.Tx) error {
		if asHook {
			h := &notice.Hook{ID: sortid.First(at.Add(time.Duration(len(c.hooks)) * time.Millisecond)).String(), Organization: organization, URL: target, Events: notice.DefaultEvents, Secret: notice.NewSecret()}
			hook, c.hooks[target] = h.ID, h
			if err := tx.PutHook(h); err != nil {
				return err
			}
		}
		for i := range n {
			d := &notice.Delivery{
				ID: c.id(target, i), Message: fmt.Sprintf("%05d", i), Organization: organization, Hook: hook, Event: notice.Test, Target: target,
				Body: json.RawMessage(`{"data":{}}`), State: notice.Pending, CreatedAt: unit.At(at), NextAt: unit.At(at.Add(time.Duration(i) * time.Nanosecond)),
			}
			if err := tx.PutDelivery(d); err != nil {
				return err
			}
		}
		return nil
	}))
}

// id returns a unique ID. IDs of one target sort by number.
func (*crowd) id(target string, i int) string {
	id := sortid.First(time.Now())
	copy(id[6:], fmt.Appendf(nil, "%04d", i))
	for k, b := range []byte(target) {
		id[10+k%6] = id[10+k%6]*31 + b
	}
	return id.String()
}

func (c *crowd) visit(ctx context.Context, organization, host, message string) notice.Attempt {
	c.change(organization, 1)
	defer c.change(organization, -1)
	c.mu.Lock()
	c.began[host] = append(c.began[host], message)
	c.order = append(c.order, host)
	c.mu.Unlock()
	select {
	case <-time.After(c.takes(host)):
	case <-ctx.Done():
		return notice.Attempt{Error: "cut"}
	}
	if strings.HasPrefix(host, "hanging") {
		return notice.Attempt{Error: "the receiver did not respond"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[host]++
	c.doneAt[host] = time.Now()
	return notice.Attempt{Status: 200}
}

func (c *crowd) change(organization string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range []string{organization, "all"} {
		c.now[of] += n
		c.most[of] = max(c.most[of], c.now[of])
	}
}

// send starts a sender and returns a function that stops it.
func (c *crowd) send() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	sender := delivery.NewSender(c.store, delivery.SenderOptions{
		Now: time.Now, Link: func(string) string { return "" }, Warn: func(err error) { c.t.Error(err) },
		Post: func(ctx context.Context, p delivery.Posting) notice.Attempt {
			u, _ := url.Parse(p.URL)
			organization := strings.TrimPrefix(u.Path, "/")
			return c.visit(ctx, organization, u.Host, p.ID)
		},
		Mail: func(ctx context.Context, l delivery.Email) notice.Attempt { return c.visit(ctx, "lab", "mail", l.ID) },
	})
	go func() { ended <- sender.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		must.OK(c.t, <-ended)
	})
	c.t.Cleanup(stop)
	return stop
}

// taken returns how many messages a receiver has accepted.
func (c *crowd) taken(host string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done[host]
}

// Six hundred jobs end at once. In the same organization, one webhook hangs, one is slow,
// and users have named forty receivers that hang; four other organizations have only
// webhooks that hang.
func TestManyJobsThatEndAtOnceHoldUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		const jobs = 600
		c.queue("lab", "https://hanging.example/lab", true, jobs)
		c.queue("lab", "https://slow.example/lab", true, jobs)
		for i := range 40 {
			c.queue("lab", fmt.Sprintf("https://hanging-%d.example/lab", i), false, jobs/40)
		}
		for i := range 4 {
			for k := range 20 {
				c.queue(fmt.Sprint("crowded-", i), fmt.Sprintf("https://hanging-%d-%d.example/crowded-%d", i, k, i), true, 30)
			}
		}
		stop := c.send()
		time.Sleep(time.Minute) // the hanging receivers use all slots that they can get
		begin := time.Now()
		c.queue("lab", "https://good.example/lab", true, jobs)
		c.queue("lab", "mailto:ann@lab.example", false, jobs/4)
		c.queue("other", "https://neighbour.example/other", true, jobs/4)
		time.Sleep(2 * time.Minute)
		stopping := time.Now()
		stop()
		if took := time.Since(stopping); took > time.Second {
			t.Errorf("it stops after %v", took)
		}
		for host, want := range map[string]int{"good.example": jobs, "mail": jobs / 4, "neighbour.example": jobs / 4} {
			must.Equal(t, fmt.Sprintf("%s has taken", host), c.taken(host), want)
			if took := c.doneAt[host].Sub(begin); took > time.Minute {
				t.Errorf("%s had all after %v", host, took)
			}
			if host != "mail" {
				inOrder(t, host, c.began[host])
			}
		}
		if n := len(c.began["hanging.example"]); n > 20 { // four at first, then at most one every 30 seconds
			t.Errorf("the receiver that hangs was tried %d times", n)
		}
		if n := c.taken("slow.example"); n < 60 { // of 144 possible in 3 minutes
			t.Errorf("the slow receiver has accepted %d messages", n)
		}
		for _, organization := range []string{"all", "lab", "other"} {
			if want := map[string]int{"all": 64, "other": 4}[organization]; c.most[organization] > max(want, 16) {
				t.Errorf("%s: %d attempts at once", organization, c.most[organization])
			}
		}
	})
}

// Sixteen organizations have twenty hanging webhooks each. Deliveries that four other
// organizations queue later must be among the next 64 to get a slot.
func TestEachOrganizationGetsItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		for i := range 16 {
			for k := range 20 {
				c.queue(fmt.Sprint("crowded-", i), fmt.Sprintf("https://hanging-%d-%d.example/crowded-%d", i, k, i), true, 2)
			}
		}
		stop := c.send()
		time.Sleep(time.Second) // all slots are in use
		c.mu.Lock()
		before := len(c.order)
		c.mu.Unlock()
		newcomers := []string{"new-1", "new-2", "new-3", "new-4"}
		for _, name := range newcomers {
			c.queue(name, "https://"+name+"/"+name, true, 2)
		}
		time.Sleep(time.Minute)
		stop()
		for _, name := range newcomers {
			if place := slices.Index(c.order, name) - before; place < 0 || place >= 64 {
				t.Errorf("%s is the %dth that gets a slot", name, place)
			}
			must.Equal(t, name+" has taken", c.done[name], 2)
		}
	})
}

// inOrder checks that messages were sent oldest first, except those sent concurrently.
func inOrder(t *testing.T, host string, messages []string) {
	t.Helper()
	const atOnce = 4
	for i := range messages {
		if want := fmt.Sprintf("%05d", i); !slices.Contains(messages[max(0, i-atOnce):min(len(messages), i+atOnce)], want) {
			t.Errorf("%s: message %s is not the %dth: %q", host, want, i, messages[max(0, i-atOnce):min(len(messages), i+atOnce)])
			return
		}
	}
}

// A message in transit when the service stops still has a moment to arrive. A hanging
// attempt is canceled and not counted, and the same message is sent again after the next
// start.
func TestAttemptsAreCutOffWhenTheServiceStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.queue("lab", "https://good.example/lab", true, 1)
		c.queue("lab", "https://hanging.example/lab", true, 1)
		stop := c.send()
		synctest.Wait() // both are in transit
		begin := time.Now()
		stop()
		must.Equal(t, "it stops after", time.Since(begin), time.Second)
		for host, want := range map[string]notice.Delivery{
			"good": {State: notice.Delivered, Attempts: 1}, "hanging": {State: notice.Pending},
		} {
			h := c.hooks["https://"+host+".example/lab"]
			must.OK(t, c.store.View(t.Context(), func(tx app.Tx) error {
				for d, err := range tx.Deliveries(notice.Log{Organization: "lab", Hook: h.ID}) {
					must.OK(t, err)
					if d.State != want.State || d.Attempts != want.Attempts || d.Error != "" {
						t.Errorf("%s: %+v", host, d)
					}
				}
				return nil
			}))
		}
		stop = c.send()
		synctest.Wait()
		stop()
		if got := c.began["hanging.example"]; len(got) != 2 || got[0] != got[1] {
			t.Errorf("the message that was cut off was sent as %q", got)
		}
		if got := c.began["good.example"]; len(got) != 1 {
			t.Errorf("the other was sent as %q", got)
		}
	})
}
