package faults

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"molrun/app/client"
	"molrun/app/test/must"
)

// A commit ends with two syncs, one of its data pages and one of its meta page. While
// either hangs, no response may reveal the commit, because a power failure could still
// undo it: no response to the submission, to a repeated submission, or to a read.
func TestNoResponseRevealsACommitBeforeItsSync(t *testing.T) {
	t.Parallel()
	needInjection(t)
	for n, name := range []string{"of the data pages", "of the meta page"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "", manyCPUs)
			s.start() // creates the key
			s.stop()
			in := injection{
				Calls: []string{"fdatasync"}, Files: `^jobs\.db$`, Dir: s.data, When: n + 1,
				Hang: true, Armed: s.path("armed"), Trace: s.path("trace"),
			}
			s.prefix = in.prefix(t)
			s.start()
			must.OK(t, os.WriteFile(in.Armed, nil, 0o600))
			c, sub := s.client(), diaryJob("unsynced", 0, 1)
			submit := func(ctx context.Context) (*client.Job, error) { return c.Submit(ctx, sub) }
			read := func(ctx context.Context) (*client.Job, error) { return c.Job(ctx, sub.Name) }
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var asked sync.WaitGroup
			asked.Go(func() { unanswered(ctx, t, "the submission", submit) })
			must.Become(s.t, "the commit syncs", in.made)
			soon, cancelSoon := context.WithTimeout(ctx, 300*time.Millisecond) // a response usually takes one or two milliseconds
			defer cancelSoon()
			asked.Go(func() { unanswered(soon, t, "the same submission again", submit) })
			asked.Go(func() { unanswered(soon, t, "a read", read) })
			<-soon.Done()
			s.kill()
			asked.Wait()

			s.prefix = nil
			s.start()
			l, v := newLedger(), &verdict{}
			l.jobs[sub.Name] = &jobFact{submission: sub}
			must.OK(t, (&loadClient{load: load{client: s.client(), ledger: l}, ctx: ctx}).send(sub))
			s.conclude(l, v)
		})
	}
}

// unanswered fails the test if the request gets a response with the job.
func unanswered(ctx context.Context, t *testing.T, what string, ask func(context.Context) (*client.Job, error)) {
	if job, err := ask(ctx); err == nil {
		t.Errorf("the response to %s has job %s, which is not on disk yet", what, job.ID)
	}
}
