package faults

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"molrun/web/client"
)

// A commit ends with two syncs: of its pages, and of the page that makes them
// count. While either takes for ever, nobody is told of the commit: whoever
// submits, repeats that or looks gets no answer that a power cut could take
// back.
func TestNobodyIsToldOfACommitBeforeItsSync(t *testing.T) {
	t.Parallel()
	if err := canInject(); err != nil {
		lacks(t, "%v", err)
	}
	for n, name := range []string{"of its pages", "of what makes them count"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "", "[runner]\ncpus = 8\nmemory = \"1GiB\"\n")
			s.start() // for the key
			s.stop()
			in := injection{
				Calls: []string{"fdatasync"}, Files: `^jobs\.db$`, Dir: s.data, When: n + 1,
				Hold: true, Armed: s.path("armed"), Trace: s.path("trace"),
			}
			s.prefix = in.prefix(t)
			s.start()
			must(t, os.WriteFile(in.Armed, nil, 0o600))
			c, sub := s.client(), diaryJob("held", 0, 1)
			submit := func(ctx context.Context) (*client.Job, error) { return c.Submit(ctx, sub) }
			look := func(ctx context.Context) (*client.Job, error) { return c.Job(ctx, sub.Name) }
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var asked sync.WaitGroup
			asked.Go(func() { unanswered(ctx, t, "the submission", submit) })
			s.eventually("the commit syncs", in.made)
			soon, cancelSoon := context.WithTimeout(ctx, 300*time.Millisecond) // an answer takes one or two
			defer cancelSoon()
			asked.Go(func() { unanswered(soon, t, "the same submission again", submit) })
			asked.Go(func() { unanswered(soon, t, "a look", look) })
			<-soon.Done()
			s.kill()
			asked.Wait()

			s.prefix = nil
			s.start()
			l, v := newLedger(), &verdict{}
			l.jobs[sub.Name] = &jobFact{submission: sub}
			must(t, (&worker{load: load{client: s.client(), ledger: l}, ctx: ctx}).send(sub))
			s.conclude(l, v)
		})
	}
}

// unanswered fails the test where a request finds the job.
func unanswered(ctx context.Context, t *testing.T, what string, ask func(context.Context) (*client.Job, error)) {
	if job, err := ask(ctx); err == nil {
		t.Errorf("%s is answered with job %s, which is not on the disk", what, job.ID)
	}
}
