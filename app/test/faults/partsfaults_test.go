package faults

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"molrun/app/client"
	"molrun/app/test/must"
	"molrun/app/test/need"
)

// partCalls are the calls by which a file that is sent in parts gets to the disk.
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

// longText is a text of which no two places are alike.
func longText(size int) string {
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintln(&b, "line", n)
	}
	return b.String()[:size]
}

// sender returns a client that sends files in parts.
func (s *server) sender(l *ledger) *worker {
	return &worker{load: load{client: s.client(), base: s.base, ledger: l}, ctx: s.t.Context()}
}

// Every call fails that stores a file which arrives in parts, or the service is killed
// there. The file goes on from where the service then says that it ends: never behind
// what is stored, never before what it has said.
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

// parts sends a file in parts while the n-th call fails, and reports whether it was made.
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
		for _, end := range []int64{1 << 20, 12 << 20} { // longer than what is recorded at a time
			if end > at {
				return end
			}
		}
		return 20 << 20
	}
	for _, fact := range files {
		for attempt := 0; !fact.completed; attempt++ {
			if attempt == 10 {
				t.Fatalf("the file never gets to its end:\n%s", s.log.tail())
			}
			err := w.sendPart(fact, to, false)
			refused, answered := errors.AsType[*client.Error](err)
			switch {
			case err == nil:
			case answered && (refused.Status < 500 || fault == "ENOSPC" && f.name != "record" && refused.Status != http.StatusInsufficientStorage):
				t.Errorf("%s at call %d of %v is answered with %v", fault, n, f.calls, refused)
			case !answered: // killed, or ended because the database can't be trusted
				code := s.await()
				if fault != "KILL" && code != 74 {
					t.Errorf("the service ended with %d:\n%s", code, s.log.tail())
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

// A file that arrives in parts while the disk gets full is refused with what is stored,
// and goes on once there is space: where it was, without being sent again.
func TestFullDiskInterruptsParts(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("length known %t", known), func(t *testing.T) {
			t.Parallel()
			folder := mountDisk(t, 256<<20)
			s := newServer(t, filepath.Join(folder, "data"), "[runner]\ncpus = 1\nmemory = \"64MiB\"\n[disk]\nreserve = \"32MiB\"\n")
			s.start()
			l, v := newLedger(), &verdict{}
			w := s.sender(l)
			fact, err := w.beginParts("large.txt", longText(80<<20), known)
			must.OK(t, err)
			upTo := func(end int64) func(int64) int64 { return func(int64) int64 { return end } }
			rest := filepath.Join(folder, "filler")
			if known { // its space is reserved: that of others gets full
				must.OK(t, w.sendPart(fact, upTo(1<<20), false))
				filler(t, rest, freeSpace(t, folder)-32<<20)
				must.OK(t, w.sendPart(fact, upTo(40<<20), false))
				other, err := w.beginParts("other.txt", longText(8<<20), true)
				must.OK(t, err)
				wantFull(t, w.sendPart(other, upTo(1<<20), false))
			} else {
				must.OK(t, w.sendPart(fact, upTo(1<<20), false))
				filler(t, rest, freeSpace(t, folder)-32<<20-30<<20)
				wantFull(t, w.sendPart(fact, upTo(fact.parts.length), false))
				at, whole, err := fact.parts.offset(t.Context(), s.base)
				must.OK(t, err)
				if whole || at < 1<<20 || at > 40<<20 {
					t.Errorf("%d bytes are stored, all: %t", at, whole)
				}
				wantFull(t, w.sendPart(fact, upTo(fact.parts.length), false))
			}
			s.verify(l, v, true)
			s.run("rm", rest)
			s.conclude(l, v)
			for _, fact := range l.files {
				if !fact.completed {
					t.Errorf("file %s does not get to its end", fact.id)
				}
			}
		})
	}
}

func wantFull(t *testing.T, err error) {
	t.Helper()
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Status != http.StatusInsufficientStorage || refused.Code != "STORAGE_FULL" {
		t.Errorf("on a full disk: %v, want 507 STORAGE_FULL", err)
	}
}

// A part that finds no free descriptor, at whatever point, is refused for the moment. What
// is stored is still known, and the file goes on.
func TestPartsWithoutDescriptorsAreRefused(t *testing.T) {
	t.Parallel()
	need.Program(t, "prlimit")
	s := newServer(t, "", "[runner]\ncpus = 1\nmemory = \"64MiB\"\n")
	s.start()
	l, v := newLedger(), &verdict{}
	w := s.sender(l)
	refused := 0
	for free := range 6 {
		fact, err := w.beginParts(fmt.Sprintf("f%d.txt", free), longText(3<<20), free%2 == 0)
		must.OK(t, err)
		for _, end := range []int64{1 << 20, 2 << 20, 3 << 20} {
			at, _, err := fact.parts.offset(t.Context(), s.base) // also so that the connection is there
			must.OK(t, err)
			s.leaveDescriptors(free)
			r, err := fact.parts.part(t.Context(), s.base, fact.text, at, end, false)
			must.OK(t, err)
			_, _, err = ask(r)
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
