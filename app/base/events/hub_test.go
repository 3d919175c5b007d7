package events

import (
	"slices"
	"testing"

	"molrun/app/test/must"
)

var (
	here  = Topic{'a', "here"}
	there = Topic{'a', "there"}
)

// woken reports whether a listener was woken since the last call.
func woken[E any](l *Listener[E]) bool {
	select {
	case <-l.Wake():
		return true
	default:
		return false
	}
}

func publish(h *Hub[int], of string, n int, topics ...Topic) {
	h.Publish(of, ID{Number: uint64(n)}, n, topics...)
}

func wantNews(t *testing.T, what string, n News[int], last int, want ...int) {
	t.Helper()
	if !slices.Equal(n.Events, want) || n.Missed || n.Last.Number != uint64(last) {
		t.Errorf("%s: %+v, want %v up to %d", what, n, want, last)
	}
}

func TestListenersHearTheirTopicFromNowOn(t *testing.T) {
	h := &Hub[int]{}
	publish(h, "lab", 1, here)
	l, other := h.Listen("lab", here), h.Listen("lab", there)
	stranger := h.Listen("other", here)
	publish(h, "lab", 2, here)
	publish(h, "lab", 3, here, there)
	if !woken(l) || woken(l) || !woken(other) || woken(stranger) {
		t.Error("the wrong listeners are woken, or one twice")
	}
	publish(h, "lab", 4, there)
	wantNews(t, "here", l.Take(), 4, 2, 3)
	wantNews(t, "there", other.Take(), 4, 3, 4)
	wantNews(t, "of another", stranger.Take(), 0)
	publish(h, "lab", 5, here)
	if !woken(l) {
		t.Error("it is not woken again")
	}
	wantNews(t, "here again", l.Take(), 5, 5)
	l.Close()
	publish(h, "lab", 6, here, there)
	wantNews(t, "there again", other.Take(), 6, 6)
	other.Close()
	stranger.Close()
	if h.HasListeners("lab") || len(h.owners) != 0 {
		t.Errorf("%d owners remain", len(h.owners))
	}
}

// TestAQueueIsBoundedAndForgotten has one listener that never takes its news and one that
// does.
func TestAQueueIsBoundedAndForgotten(t *testing.T) {
	h := &Hub[int]{}
	asleep, awake := h.Listen("lab", here), h.Listen("lab", here)
	for n := range 3 * maxQueue {
		publish(h, "lab", n+1, here)
		wantNews(t, "awake", awake.Take(), n+1, n+1)
	}
	queue := h.owners["lab"].topics[here]
	if len(queue.queue) > maxQueue || cap(queue.queue) > 2*maxQueue {
		t.Errorf("%d events are kept", len(queue.queue))
	}
	if news := asleep.Take(); !news.Missed || len(news.Events) > 0 || news.Last.Number != 3*maxQueue {
		t.Errorf("asleep: %d events, %v", len(news.Events), news.Missed)
	}
	if queue.queue != nil {
		t.Error("events that all listeners have taken are kept")
	}
	publish(h, "lab", 1, here)
	wantNews(t, "asleep again", asleep.Take(), 1, 1)
	asleep.Close()
	if wantNews(t, "awake", awake.Take(), 1, 1); queue.queue != nil {
		t.Error("a closed listener keeps the queue")
	}
}

func TestOnlyTheLatestReportCounts(t *testing.T) {
	h := &Hub[int]{}
	h.Report("lab", "a", 1, here)
	h.Report("lab", "b", 2, here)
	h.Report("lab", "a", 3, here)
	h.Report("other", "a", 4, here)
	l := h.Listen("lab", here)
	reports := func() []int {
		all := l.Take().Reports
		slices.Sort(all)
		return all
	}
	must.Equal(t, "at first", reports(), []int{2, 3})
	if got := reports(); got != nil {
		t.Errorf("again: %v", got)
	}
	h.Report("lab", "c", 5, here)
	h.Report("lab", "c", 6, here)
	h.Report("lab", "b", 7, there)
	h.Forget("lab", "b")
	if !woken(l) {
		t.Error("a report wakes no listener")
	}
	must.Equal(t, "later", reports(), []int{6})
	l.Close()
	for _, about := range []string{"a", "c", "none"} {
		h.Forget("lab", about)
	}
	h.Forget("nobody", "a")
	must.Equal(t, "owners are left", len(h.owners), 1)
}

func TestWakeAllWakesEverybodyOnce(t *testing.T) {
	h := &Hub[int]{}
	a, b := h.Listen("lab", here), h.Listen("other", there)
	h.WakeAll()
	h.WakeAll()
	if !woken(a) || !woken(b) || woken(a) {
		t.Error("not all listeners are woken exactly once")
	}
	wantNews(t, "nothing", a.Take(), 0)
}

func TestIDsHaveOneForm(t *testing.T) {
	for _, id := range []ID{{}, {1, 2}, {1<<64 - 1, 1<<32 - 1}} {
		if got, err := ParseID(id.String()); err != nil || got != id {
			t.Errorf("%v reads as %v, %v", id, got, err)
		}
	}
	for _, bad := range []string{"", "1", "1-", "-00000000", "1-0", "01-00000000", "1-0000000A", "1-000000000", "+1-00000000", "18446744073709551616-00000000", " 1-00000000"} {
		if id, err := ParseID(bad); err == nil {
			t.Errorf("%q reads as %v", bad, id)
		}
	}
}
