package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/job/share"
)

// shareUse is what a user does with a link that shows a result: make, revoke or open it.
type shareUse struct {
	id    app.ShareID // of the one to revoke or open
	token string
	ttl   time.Duration
}

// shareChange is a share after a transaction; now is nil if it was deleted.
type shareChange struct {
	id  app.ShareID
	now *app.Share
}

// shareResult has a user make a link that shows a result.
func (s *simulation) shareResult() {
	s.up()
	e := s.some(func(e *entry) bool { return e.Status == app.Completed })
	if s.process == nil || e == nil {
		return
	}
	if s.rng.IntN(6) == 0 {
		e = s.some(func(*entry) bool { return true })
	}
	by := app.Caller{Organization: e.Organization, Email: e.Email}
	if s.rng.IntN(4) == 0 {
		by = users[s.rng.IntN(len(users))]
	}
	by.KeyID = s.keys[by.Email]
	r := &request{label: label{verb: "share"}, by: by, name: e.Name, share: &shareUse{ttl: time.Second + seconds(s.rng, 300)}}
	s.send(r)
}

// useShare has a user revoke a link, or a stranger open one.
func (s *simulation) useShare(verb string) {
	s.up()
	all := make([]app.ShareID, 0, len(s.tokens))
	for id := range s.tokens {
		all = append(all, id)
	}
	if s.process == nil || len(all) == 0 {
		return
	}
	slices.Sort(all)
	id := all[s.rng.IntN(len(all))]
	r := &request{label: label{verb: verb}, name: "a share", share: &shareUse{id: id, token: s.tokens[id]}}
	if r.by = users[s.rng.IntN(len(users))]; verb == "revoke" && s.shares[id] != nil && s.rng.IntN(4) > 0 {
		r.by = app.Caller{Organization: s.shares[id].Organization, Email: s.shares[id].Email}
	}
	s.send(r)
}

func (r *request) callShare(ctx context.Context, p *process) (err error) {
	switch use := r.share; r.label.verb {
	case "share":
		var made *app.Share
		var link string
		if made, link, err = p.Shares.Create(ctx, r.by, share.Request{Name: r.name, TTL: use.ttl}); err == nil {
			use.id, use.token = made.ID, strings.TrimPrefix(link, share.Path)
		}
	case "revoke":
		err = p.Shares.Revoke(ctx, r.by, string(use.id))
	case "open":
		_, err = p.Shares.Open(ctx, use.token)
	}
	return err
}

// expectOfShare returns the answer to a request that never reaches the store's Update.
// A link shows nothing from the moment on when it is revoked or expires, or its job is
// deleted.
func (s *simulation) expectOfShare(r *request) *answer {
	switch r.label.verb {
	case "share":
		e := s.ledger.named(r.by.Organization, r.name)
		switch {
		case e == nil:
			return &answer{code: fault.NotFound}
		case !r.by.May(e.Email):
			return &answer{code: fault.Forbidden}
		case e.Status != app.Completed:
			return &answer{code: fault.JobNotCompleted}
		}
	case "open":
		if !s.shows(s.shares[r.share.id]) {
			return &answer{code: fault.NotFound}
		}
	}
	return &answer{}
}

// shows reports whether a link shows something now.
func (s *simulation) shows(one *app.Share) bool {
	return one != nil && s.wall().Before(one.ExpiresAt.Time) && s.ledger.jobs[one.Job] != nil
}

// expectedOfShare returns the answer to a request when the store runs it.
func (r *request) expectedOfShare(s *simulation) answer {
	one := s.shares[r.share.id]
	switch {
	case r.label.verb == "share":
		if s.ledger.named(r.by.Organization, r.name) == nil {
			return answer{code: fault.NotFound}
		}
	case one == nil || r.label.verb == "revoke" && one.Organization != r.by.Organization:
		return answer{code: fault.NotFound}
	case r.label.verb == "revoke" && !r.by.May(one.Email):
		return answer{code: fault.Forbidden}
	}
	return answer{}
}

// applyShares checks what a commit does to shares.
func (s *simulation) applyShares(c *change) {
	for _, one := range c.shares {
		if err := s.judgeShare(c, s.shares[one.id], one.now); err != nil {
			s.faultf("%s: a share: %v", c.label, err)
		}
		if one.now == nil {
			delete(s.shares, one.id)
			continue
		}
		s.shares[one.id] = one.now
	}
}

func (s *simulation) judgeShare(c *change, old, now *app.Share) error {
	r := s.requests[c.label]
	switch {
	case r == nil || r.share == nil:
		return errors.New("it changes without a request")
	case now == nil && r.label.verb == "revoke":
		return allow(old.ID == r.share.id, "another one is revoked")
	case now == nil:
		return allow(r.label.verb == "share" && !s.shows(old), "one that shows something is deleted")
	case old == nil:
		return allow(r.label.verb == "share" && now.Email == r.by.Email && now.JobName == r.name && !now.ExpiresAt.After(now.CreatedAt.Add(r.share.ttl)),
			"it is another one than was asked for")
	}
	return allow(r.label.verb == "open" && now.ID == r.share.id && now.Hash == old.Hash && now.Job == old.Job && now.ExpiresAt == old.ExpiresAt,
		"more changes than when it was used")
}

// compareShares compares the shares of the store with what was committed.
func (s *simulation) compareShares() error {
	return s.process.store.View(context.Background(), func(tx app.Tx) error {
		have := 0
		for _, organization := range organizations {
			for one, err := range tx.Shares(organization) {
				if err != nil {
					return err
				}
				if want := s.shares[one.ID]; want == nil || want.Hash != one.Hash || want.Organization != organization {
					return fmt.Errorf("the store has the share %s of %s, which was not committed", one.ID, organization)
				}
				have++
			}
		}
		return allow(have == len(s.shares), fmt.Sprintf("the store has %d shares, but %d were committed", have, len(s.shares)))
	})
}
