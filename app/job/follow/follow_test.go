package follow_test

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app"
	"molrun/app/job/access"
	"molrun/app/job/apikey"
	"molrun/app/job/follow"
	"molrun/app/test/fixture"
	"molrun/app/test/must"
)

// site is a fixture with a follower.
type site struct {
	*fixture.Site
	t        *testing.T
	follower *follow.Follower
	ann      app.Caller
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Site: fixture.New(t, app.Options{}), t: t}
	accounts := access.New(s.Store, s.Blobs, s.Now)
	s.follower = follow.New(s.Store, s.Service, accounts)
	key, _, err := accounts.CreateKey(t.Context(), app.Operator(), access.KeyRequest{Organization: "lab", Email: "ann@lab.example", Role: apikey.Member})
	must.OK(t, err)
	s.ann, err = accounts.Authenticate(t.Context(), key, netip.Addr{})
	must.OK(t, err)
	return s
}

func (s *site) job(q follow.JobQuery) *follow.Stream {
	s.t.Helper()
	stream, err := s.follower.Job(s.t.Context(), s.ann, q)
	must.OK(s.t, err)
	s.t.Cleanup(stream.Close)
	return stream
}

func (s *site) jobs() *follow.Stream {
	s.t.Helper()
	stream, err := s.follower.Jobs(s.t.Context(), s.ann, follow.Query{})
	must.OK(s.t, err)
	s.t.Cleanup(stream.Close)
	return stream
}

// take returns the messages of a stream until it has no more for now, or ends.
func (s *site) take(stream *follow.Stream) (all []follow.Message) {
	s.t.Helper()
	over := time.After(must.Patience)
	for {
		messages, err := stream.Next(s.t.Context())
		if errors.Is(err, io.EOF) {
			return all
		}
		must.OK(s.t, err)
		for _, m := range messages {
			if m.Event != "" {
				all = append(all, m)
			}
		}
		if len(messages) == 0 || messages[len(messages)-1].Event == "" {
			return all
		}
		select {
		case <-over:
			s.t.Fatal("the stream never runs out of messages")
		default:
		}
	}
}

// text returns the program output contained in messages.
func text(messages []follow.Message) string {
	var b strings.Builder
	for _, m := range messages {
		if _, rest, found := strings.Cut(string(m.Data), `"text":"`); found && m.Event == "log" {
			b.WriteString(strings.NewReplacer(`\n`, "\n", `"}`, "").Replace(rest))
		}
	}
	return b.String()
}

// printed replaces the log of a job's first attempt.
func (s *site) printed(id app.JobID, log string) {
	s.t.Helper()
	must.Write(s.t, filepath.Join(s.Blobs.JobDir(id), "1", "log"), log)
}

// fails ends a job's first attempt as failed.
func (s *site) fails(id app.JobID) {
	s.t.Helper()
	now := s.Now()
	must.OK(s.t, s.Runs.Finish(s.t.Context(), id, 1, app.Ending{
		Outcome: &app.Outcome{StartedAt: now, EndedAt: now}, Failure: &app.Failure{Code: app.FailedExit, Message: "It failed."},
	}))
}

func lines(from, to int) string {
	var b strings.Builder
	for n := from; n < to; n++ {
		fmt.Fprintf(&b, "line %06d\n", n)
	}
	return b.String()
}

// TestALogIsToldWholeThoughItLosesItsMiddle prints more than fits in a message, then
// replaces the log as a task does when it is full.
func TestALogIsToldWholeThoughItLosesItsMiddle(t *testing.T) {
	s := newSite(t)
	id := s.Submit(s.ann, "a", "{}")
	s.Start(id)
	stream := s.job(follow.JobQuery{Name: "a", Logs: true})
	s.take(stream)
	s.printed(id, lines(0, 50_000))
	all := s.take(stream)
	must.Equal(t, "the streamed log", text(all), lines(0, 50_000))
	for _, m := range all {
		if len(m.Data) > 20<<10 {
			t.Errorf("a message has %d bytes", len(m.Data))
		}
	}
	s.printed(id, lines(0, 100)+"\n[molrun: 10 bytes omitted here]\n"+lines(40_000, 50_100))
	must.Equal(t, "after the lost middle", text(s.take(stream)), lines(50_000, 50_100))
	// A new client gets the last MiB, starting at the beginning of a line.
	s.printed(id, lines(0, 200_000))
	got := text(s.take(s.job(follow.JobQuery{Name: "a", Logs: true})))
	if !strings.HasPrefix(got, "line ") || !strings.HasSuffix(got, lines(199_999, 200_000)) || len(got) > 1<<20 || len(got) < 1<<20-20 {
		t.Errorf("a late listener: %d bytes, %.20q", len(got), got)
	}
}

// TestLinesWithoutEndAreToldInParts checks that no character is split.
func TestLinesWithoutEndAreToldInParts(t *testing.T) {
	s := newSite(t)
	for name, letters := range map[string]string{"long": "é€𝛼", "some": "ab𝛼"} {
		id := s.Submit(s.ann, name, "{}")
		s.Start(id)
		stream := s.job(follow.JobQuery{Name: name, Logs: true})
		s.take(stream)
		long := strings.Repeat(letters, 5000)
		s.printed(id, "x"+long)
		if got := text(s.take(stream)); got == "" || !strings.HasPrefix("x"+long, got) || len(long)-len(got) > 16<<10 {
			t.Errorf("%s: told %d of %d bytes", name, len(got), len(long))
		}
		s.printed(id, "x"+long+"\nrest")
		rest := text(s.take(stream))
		if strings.Contains(rest, "\uFFFD") || !strings.HasSuffix(rest, "\n") {
			t.Errorf("%s: told %.60q…", name, rest)
		}
		s.fails(id)
		all := s.take(stream)
		if got := text(all); got != "rest" || all[len(all)-1].Event != "end" {
			t.Errorf("%s: at the end: %q, %v", name, got, all[len(all)-1].Event)
		}
	}
}

// TestWhoComesBackHearsNothingTwice opens a stream at the position where an earlier one
// had sent everything.
func TestWhoComesBackHearsNothingTwice(t *testing.T) {
	s := newSite(t)
	id := s.Submit(s.ann, "a", "{}")
	s.Start(id)
	s.printed(id, lines(0, 10))
	all := s.take(s.job(follow.JobQuery{Name: "a", Logs: true}))
	place, err := follow.ParsePlace(all[len(all)-1].ID)
	must.OK(t, err)
	again := s.job(follow.JobQuery{Name: "a", Logs: true, After: &place})
	if all := s.take(again); len(all) > 0 {
		t.Errorf("told again: %q", all)
	}
	s.printed(id, lines(0, 11))
	must.Equal(t, "told then", text(s.take(again)), lines(10, 11))
}

func TestOnlyRunningJobsHaveProgress(t *testing.T) {
	s := newSite(t)
	j := s.Start(s.Submit(s.ann, "a", "{}"))
	stream := s.jobs()
	heard := func() (kinds []string) {
		for _, m := range s.take(stream) {
			kinds = append(kinds, m.Event)
		}
		return kinds
	}
	note := "changed while it runs"
	s.Runs.SetProgress(j, app.Progress{Fraction: 0.5})
	must.OK(t, must.Error2(s.Service.Jobs.Label(t.Context(), s.ann, "a", app.Labels{Note: &note}, nil)))
	must.Equal(t, "while it runs", heard(), []string{"job", "progress"})
	s.Runs.SetProgress(j, app.Progress{Fraction: 0.9})
	s.fails(j.ID)
	must.Equal(t, "when it has failed", heard(), []string{"metrics", "job"})
}

// TestWhoFallsBehindCatchesUpOrListsAnew changes a job more often than the hub and the
// budget allow.
func TestWhoFallsBehindCatchesUpOrListsAnew(t *testing.T) {
	s := newSite(t)
	s.Submit(s.ann, "a", "{}")
	behind, one := s.jobs(), s.job(follow.JobQuery{Name: "a"})
	s.take(behind)
	s.take(one)
	change := func(n int) {
		t.Helper()
		note := fmt.Sprint("note ", n)
		must.OK(t, must.Error2(s.Service.Jobs.Label(t.Context(), s.ann, "a", app.Labels{Note: &note}, nil)))
	}
	const many = 1500 // more than the hub keeps
	for n := range many {
		change(n)
	}
	all := s.take(behind)
	if len(all) != many {
		t.Fatalf("told %d changes, want %d: %v", len(all), many, all[0])
	}
	for n, m := range all {
		if !strings.Contains(string(m.Data), fmt.Sprintf(`"note":"note %d"`, n)) {
			t.Fatalf("change %d is %s", n, m.Data)
		}
	}
	must.Equal(t, "the stream of one job", len(s.take(one)), many)
}
