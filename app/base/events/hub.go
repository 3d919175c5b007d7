package events

import (
	"container/list"
	"sync"
)

// Topic is what a listener subscribes to, and what an event is about.
type Topic struct {
	Kind byte
	Of   string
}

// maxQueue is how many events of a topic are queued for its listeners. A listener that is
// further behind misses some.
const maxQueue = 1024

// Hub delivers events to listeners. It never waits for a listener: it records that there
// is news, wakes the listener, and keeps a bounded queue for all listeners of a topic. In
// addition to these events, the hub keeps reports: a new report about an object replaces
// the previous one.
//
// Events of one owner never reach listeners of another.
type Hub[E any] struct {
	mu     sync.Mutex
	owners map[string]*owner[E]
}

type owner[E any] struct {
	last      ID // ID of the last event published while there are listeners
	listeners int
	topics    map[Topic]*topic[E]
	version   uint64 // number of reports so far
	reports   list.List
	about     map[string]*list.Element // elements of reports, by object
}

// report is the latest report about one object. The list of reports is in order of
// version.
type report[E any] struct {
	version uint64
	about   string
	event   E
}

type topic[E any] struct {
	queue     []E
	first     uint64 // number of queue[0], counted from the topic's first listener
	listeners map[*Listener[E]]struct{}
	woken     int // listeners that were woken but have not taken their news
}

// Listener receives the events of one topic. It is for use by one goroutine.
type Listener[E any] struct {
	hub   *Hub[E]
	owner string
	topic Topic
	wake  chan struct{}

	// These fields belong to the hub and are guarded by its mutex.
	next  uint64 // position in the queue
	seen  uint64 // version of the last report taken
	woken bool
}

// News is what happened since a listener's previous Take.
type News[E any] struct {
	Events  []E
	Missed  bool // too many events occurred, so Events is empty
	Reports []E  // all of the owner's reports on the first call, then only new ones
	Last    ID   // ID of the last event; zero if nothing was published
}

// Listen creates a listener, which receives only news from now on.
func (h *Hub[E]) Listen(of string, about Topic) *Listener[E] {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.owner(of)
	t := o.topics[about]
	if t == nil {
		t = &topic[E]{listeners: map[*Listener[E]]struct{}{}}
		o.topics[about] = t
	}
	l := &Listener[E]{hub: h, owner: of, topic: about, wake: make(chan struct{}, 1), next: t.end()}
	t.listeners[l] = struct{}{}
	o.listeners++
	return l
}

func (h *Hub[E]) owner(of string) *owner[E] {
	if h.owners == nil {
		h.owners = map[string]*owner[E]{}
	}
	o := h.owners[of]
	if o == nil {
		o = &owner[E]{topics: map[Topic]*topic[E]{}, about: map[string]*list.Element{}}
		h.owners[of] = o
	}
	return o
}

func (t *topic[E]) end() uint64 { return t.first + uint64(len(t.queue)) }

// Close ends the listener.
func (l *Listener[E]) Close() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	o := l.hub.owners[l.owner]
	t := o.topics[l.topic]
	t.markTaken(l)
	delete(t.listeners, l)
	if len(t.listeners) == 0 {
		delete(o.topics, l.topic)
	}
	if o.listeners--; o.listeners == 0 {
		o.last = ID{}
	}
	l.hub.tidy(l.owner, o)
}

// tidy deletes an owner without listeners and reports.
func (h *Hub[E]) tidy(of string, o *owner[E]) {
	if o.listeners == 0 && len(o.about) == 0 {
		delete(h.owners, of)
	}
}

// HasListeners reports whether an owner's events have listeners.
func (h *Hub[E]) HasListeners(of string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.owners[of]
	return o != nil && o.listeners > 0
}

// Publish passes an event on to the listeners of its topics.
func (h *Hub[E]) Publish(of string, id ID, e E, topics ...Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.owners[of]
	if o == nil || o.listeners == 0 {
		return
	}
	o.last = id
	for _, about := range topics {
		t := o.topics[about]
		if t == nil {
			continue
		}
		if len(t.queue) >= maxQueue {
			t.first += maxQueue / 2
			t.queue = append(make([]E, 0, maxQueue), t.queue[maxQueue/2:]...)
		}
		t.queue = append(t.queue, e)
		t.wakeListeners()
	}
}

// Report replaces the report about an object and notifies the listeners of its topics.
func (h *Hub[E]) Report(of, about string, e E, topics ...Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.owner(of)
	if old := o.about[about]; old != nil {
		o.reports.Remove(old)
	}
	o.version++
	o.about[about] = o.reports.PushBack(report[E]{o.version, about, e})
	for _, at := range topics {
		if t := o.topics[at]; t != nil {
			t.wakeListeners()
		}
	}
}

// Forget deletes the report about an object.
func (h *Hub[E]) Forget(of, about string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.owners[of]
	if o == nil {
		return
	}
	if old := o.about[about]; old != nil {
		o.reports.Remove(old)
		delete(o.about, about)
	}
	h.tidy(of, o)
}

// WakeAll wakes all listeners, so that they check whether they still have access.
func (h *Hub[E]) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.owners {
		for _, t := range o.topics {
			t.wakeListeners()
		}
	}
}

// wakeListeners wakes the listeners of a topic that have not been woken.
func (t *topic[E]) wakeListeners() {
	if t.woken == len(t.listeners) {
		return
	}
	for l := range t.listeners {
		if l.woken {
			continue
		}
		l.woken = true
		t.woken++
		select {
		case l.wake <- struct{}{}:
		default: // the last wake-up is still pending
		}
	}
}

// markTaken records that a listener has taken its news. Once all have, the queue is dropped.
func (t *topic[E]) markTaken(l *Listener[E]) {
	if !l.woken {
		return
	}
	l.woken = false
	if t.woken--; t.woken == 0 {
		t.first, t.queue = t.end(), nil
	}
}

// Wake returns a channel that receives a value when there is news.
func (l *Listener[E]) Wake() <-chan struct{} { return l.wake }

// Take returns the news. The caller must not change its slices.
func (l *Listener[E]) Take() News[E] {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	o := l.hub.owners[l.owner]
	t := o.topics[l.topic]
	news := News[E]{Last: o.last, Missed: l.next < t.first}
	if !news.Missed {
		news.Events = t.queue[l.next-t.first:]
	}
	l.next = t.end()
	t.markTaken(l)
	for r := o.reports.Back(); r != nil && r.Value.(report[E]).version > l.seen; r = r.Prev() {
		news.Reports = append(news.Reports, r.Value.(report[E]).event)
	}
	l.seen = o.version
	return news
}
