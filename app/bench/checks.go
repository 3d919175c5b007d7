package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	checksAtOnce = 600 // submissions of one user
	checkRepeats = 3   // of each, for more pages
)

// measureListUnderChecks compares first pages of a user with those while another
// user's submissions are checked, all sent at once: by the built-in engine, and by
// a program. Every submission must be answered as it would be alone. Responses that
// cost nothing but their turn on the CPUs, which the submitting clients share, put
// the pages into proportion.
func measureListUnderChecks(ctx context.Context, b *testbed, f figures) error {
	s := b.large
	quiet, err := closedLoop(ctx, 1, b.Duration, s.calling(s.get(firstPage)))
	if err != nil {
		return err
	}
	f["list.unchecked.p99"] = quiet.quantile(.99)
	other, err := s.otherUser(ctx)
	if err != nil {
		return err
	}
	for name, settings := range map[string]string{"cg-idp": `{"sequences":["DSHAKRHHGYKRKFHEKHHSHRGY"]}`, "checked": `{}`} {
		pages, submissions, err := whileChecking(ctx, s.get(firstPage), s, other, name, settings)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		empty, _, err := whileChecking(ctx, s.get("/version"), s, other, name, settings)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		f["list."+name+".p50"], f["list."+name+".p99"] = pages.quantile(.5), pages.quantile(.99)
		f["empty."+name+".p99"] = empty.quantile(.99)
		f["check."+name+".p50"], f["check."+name+".max"] = submissions.quantile(.5), submissions.quantile(1)
		f["list."+name+".pages"] = float64(len(pages.took))
	}
	return nil
}

// whileChecking sends a request of s again and again until all submissions of the
// other user are answered, in several repeats.
func whileChecking(ctx context.Context, request []byte, s, other *server, typ, settings string) (answers, submissions sample, err error) {
	for range checkRepeats {
		a, b, err := whileCheckingOnce(ctx, request, s, other, typ, settings)
		if err != nil {
			return answers, submissions, err
		}
		answers.took, submissions.took = append(answers.took, a.took...), append(submissions.took, b.took...)
	}
	slices.Sort(answers.took)
	slices.Sort(submissions.took)
	return answers, submissions, nil
}

func whileCheckingOnce(ctx context.Context, request []byte, s, other *server, typ, settings string) (answers, submissions sample, err error) {
	checking, stop := context.WithCancel(ctx)
	var submitErr error
	var submitting sync.WaitGroup
	submitting.Go(func() {
		defer stop()
		submissions, submitErr = closedLoop(ctx, checksAtOnce, 0, other.submittingOnce(typ, settings))
	})
	answers, err = closedLoop(checking, 1, patience, s.calling(request))
	submitting.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return answers, submissions, errors.Join(err, submitErr, ctx.Err())
}

// otherUser returns the server as another user sees it.
func (s *server) otherUser(ctx context.Context) (*server, error) {
	s.series++
	key, err := s.run(ctx, "key", "create", "--organization", organization, "--email", fmt.Sprintf("other%d@bench.example", s.series))
	other := *s
	other.key = strings.TrimSpace(key)
	return &other, err
}

// submittingOnce is a client that makes one submission.
func (s *server) submittingOnce(typ, settings string) client {
	series := time.Now().UnixNano()
	return connected(s.address, func(c *conn, n int) func() error {
		return func() error {
			answer, err := c.do(s.submission(fmt.Sprintf("%s-%d-%d", typ, series, n), typ, settings))
			if err == nil && !bytes.Contains(answer, []byte(`"created":true`)) {
				err = fmt.Errorf("the job is not new: %s", answer)
			}
			return err
		}
	})
}
