package faults

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"molrun/app/client"
	"molrun/app/test/must"
)

// partCalls has the kinds of calls that write a file sent in parts to disk.
var partCalls = []failing{
	{name: "create", calls: []string{"openat"}, files: `^uploads/partial/`},
	{name: "reserve", calls: []string{"fallocate"}, files: `^uploads/partial/`},
	{name: "write", calls: []string{"write"}, files: `^uploads/partial/`},
	{name: "sync", calls: []string{"fsync"}, files: `^uploads/partial/`},
	{name: "directory sync", calls: []string{"fsync"}, files: `^uploads/partial$`},
	{name: "cut", calls: []string{"ftruncate"}, files: `^uploads/partial/`},
	{name: "link", calls: []string{"link", "linkat"}, files: `^uploads/`},
	{name: "shard sync", calls: []string{"fsync"}, files: `^uploads/[^pt][^/]*$`},
	{name: "removal", calls: []string{"unlink", "unlinkat"}, files: `^uploads/partial/`},
	{name: "record", calls: []string{"fdatasync"}, files: `^jobs\.db$`},
}

// longText returns a text whose lines are all different, so that misplaced bytes are
// detected.
func longText(size int) string {
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintln(&b, "line", n)
	}
	return b.String()[:size]
}

// sender returns a client that sends files in parts.
func (s *server) sender(l *ledger) *loadClient {
	return &loadClient{load: load{client: s.client(), base: s.base, ledger: l}, ctx: s.t.Context()}
}

// Every call that stores a file sent in parts fails in turn, or the service is killed at
// the call. Sending must resume at the offset that the service then reports: never beyond
// the stored bytes, and never before an acknowledged offset.
func TestFailingCallsLoseNoPart(t *testing.T) {
	t.Parallel()
	needInjection(t)
	for _, f := range partCalls {
		for _, fault := range []string{"EIO", "ENOSPC", "KILL"} {
			t.Run(strings.ReplaceAll(f.name, " ", "_")+"/"+fault, func(t *testing.T) {
				t.Parallel()
				reached := 0
				for n := 1; n <= *positions; n++ {
					if !f.parts(t, fault, n) {
						break
					}
					reached++
				}
				if reached == 0 {
					t.Error("the call was not made")
				}
			})
		}
	}
}

// parts sends a file in parts while the n-th call fails, and reports whether that call
// was made.
func (f failing) parts(t *testing.T, fault string, n int) (made bool) {
	t.Helper()
	s := newServer(t, "", "[runner]\ncpus = 1\nmemory = \"64MiB\"\n")
	in := ways[fault]
	in.Calls, in.Files, in.Dir, in.When, in.Trace, in.Armed = f.calls, f.files, s.data, n, s.path("trace"), s.path("armed")
	s.prefix = in.prefix(t)
	s.start()
	l, v := newLedger(), &verdict{}
	w := s.sender(l)
	var files []*fileFact
	for _, known := range []bool{true, false} {
		fact, err := w.beginParts(fmt.Sprintf("known-%t.txt", known), longText(20<<20), known)
		must.OK(t, err)
		files = append(files, fact)
	}
	s.run("touch", in.Armed)
	to := func(at int64) int64 {
		for _, end := range []int64{1 << 20, 12 << 20} { // more than is recorded at a time
			if end > at {
				return end
			}
		}
		return 20 << 20
	}
	for _, fact := range files {
		for attempt := 0; !fact.completed; attempt++ {
			if attempt == 10 {
				t.Fatalf("the file never gets to its end:\n%s", s.log.Tail())
			}
			err := w.sendPart(fact, to, false)
			refused, answered := errors.AsType[*client.Error](err)
			switch {
			case err == nil:
			case answered && (refused.Status < 500 || fault == "ENOSPC" && f.name != "record" && refused.Status != http.StatusInsufficientStorage):
				t.Errorf("%s at call %d of %v is answered with %v", fault, n, f.calls, refused)
			case !answered: // killed, or exited because the database cannot be trusted
				code := s.await()
				if fault != "KILL" && code != 74 {
					t.Errorf("the service ended with %d:\n%s", code, s.log.Tail())
				}
				s.prefix = nil
				s.check()
				s.start()
				w = s.sender(l)
			}
		}
	}
	if !s.ended() {
		s.verify(l, v, true)
	}
	v.report(t)
	s.stop()
	s.prefix = nil
	s.check("--deep")
	return in.made()
}

// A part that runs out of descriptors, at any point, must be rejected with a temporary
// error. The stored length must still be known, and sending can continue.
func TestPartsWithoutDescriptorsAreRefused(t *testing.T) {
	t.Parallel()
	must.Installed(t, "prlimit")
	s := newServer(t, "", "[runner]\ncpus = 1\nmemory = \"64MiB\"\n")
	s.start()
	l, v := newLedger(), &verdict{}
	w := s.sender(l)
	refused := 0
	for free := range 6 {
		fact, err := w.beginParts(fmt.Sprintf("f%d.txt", free), longText(3<<20), free%2 == 0)
		must.OK(t, err)
		for _, end := range []int64{1 << 20, 2 << 20, 3 << 20} {
			at, _, err := fact.parts.offset(t.Context(), s.base) // also opens the connection
			must.OK(t, err)
			s.leaveDescriptors(free)
			r, err := fact.parts.part(t.Context(), s.base, fact.text, at, end, false)
			must.OK(t, err)
			_, _, err = sendRequest(r)
			s.leaveDescriptors(1000)
			no, answered := errors.AsType[*client.Error](err)
			switch {
			case answered && no.Status == http.StatusServiceUnavailable:
				refused++
			case err != nil && !errors.Is(err, syscall.ECONNRESET):
				t.Errorf("with %d free descriptors: %v", free, err)
			}
			must.OK(t, w.sendPart(fact, func(int64) int64 { return end }, false))
		}
	}
	if refused == 0 {
		t.Error("no part was refused")
	}
	s.verify(l, v, true)
	v.report(t)
	s.stop()
	s.check("--deep")
}
