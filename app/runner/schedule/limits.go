package schedule

import (
	"maps"
	"time"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/job/eta"
	"molrun/app/job/quota"
)

// Limits bounds the resources that users and organizations have in use at once, on all
// executors together.
type Limits struct {
	of   quota.Of
	used map[quota.Holder]placement.Resources
}

// NewLimits returns limits with nothing in use.
func NewLimits(of quota.Of) *Limits {
	return &Limits{of: of, used: map[quota.Holder]placement.Resources{}}
}

func (l *Limits) clone() *Limits { return &Limits{of: l.of, used: maps.Clone(l.used)} }

// addUse adds the needs of a user's job to the resources in use; negative needs release
// them.
func (l *Limits) addUse(u User, needs placement.Resources) {
	for _, h := range quota.Holders(u.Organization, u.Email) {
		l.used[h] = plus(l.used[h], needs)
		if l.used[h] == (placement.Resources{}) {
			delete(l.used, h)
		}
	}
}

// remaining returns the resources still available to a user, and whether these are
// limited.
func (l *Limits) remaining(u User) (left placement.Resources, bounded bool) {
	left = quota.Quota{}.Left(placement.Resources{})
	for _, h := range quota.Holders(u.Organization, u.Email) {
		q := l.of.For(h)
		of := q.Left(l.used[h])
		left.CPUs, left.GPUs = min(left.CPUs, of.CPUs), min(left.GPUs, of.GPUs)
		bounded = bounded || q.Binds()
	}
	return left, bounded
}

// exceeded returns the holder whose limit a job would exceed now. kept returns the part
// of a holder's limit that is kept for other jobs.
func (l *Limits) exceeded(w app.Waiting, kept func(quota.Holder) placement.Resources) (h quota.Holder, exceeds bool) {
	for _, h := range quota.Holders(w.Organization, w.Email) {
		if q := l.of.For(h); q.Binds() && short(q.Left(plus(l.used[h], kept(h))), w.Needs) != (placement.Resources{}) {
			return h, true
		}
	}
	return h, false
}

func keptNothing(quota.Holder) placement.Resources { return placement.Resources{} }

// ShareLimits sets the limits, which several executors can share.
func (t *FairShare) ShareLimits(l *Limits) { t.limits = l }

// limited is a job held up by a holder's limit, although the job alone would not exceed
// it.
type limited struct {
	passedOver
	by quota.Holder
}

// limitedBy returns the holder whose limit holds a job up now: too much is in use, or the
// rest is kept for a job that has waited longer, so that small jobs can't overtake a
// large one forever.
func (c *choice) limitedBy(w app.Waiting) (h quota.Holder, held bool) {
	return c.share.limits.exceeded(w, func(h quota.Holder) placement.Resources { return c.keptOf(h, w) })
}

// keptOf returns the part of a holder's limit that w must leave free. A job for which a
// limit is kept binds only the jobs after it, so that no two wait for each other. It
// binds neither the job with the reservation nor jobs of a higher priority.
func (c *choice) keptOf(h quota.Holder, w app.Waiting) placement.Resources {
	first := c.first[h]
	switch own := c.share.limited[w.ID]; {
	case first == nil || first.ID == w.ID || w.Priority > first.Priority:
	case c.reserved != nil && c.reserved.ID == w.ID:
	case own != nil && own.before(&first.passedOver):
	default:
		return first.Needs
	}
	return placement.Resources{}
}

// firstLimited returns, for each holder, the job for which its limit is kept: among the
// jobs held up for too long, the one with the highest priority, then the one that has
// waited longest.
func (t *FairShare) firstLimited(now time.Time) map[quota.Holder]*limited {
	first := map[quota.Holder]*limited{}
	for _, l := range t.limited {
		if now.Sub(l.since) >= t.reserveAfter && !t.slots.lacksGPUs(l.Needs) && (first[l.by] == nil || l.before(&first[l.by].passedOver)) {
			first[l.by] = l
		}
	}
	return first
}

// recordLimited records that a limit holds a job up, and why. A job that alone exceeds the limit
// waits without keeping anything from others.
func (c *choice) recordLimited(w app.Waiting, h quota.Holder) {
	t, q := c.share, c.share.limits.of.For(h)
	if !t.mute {
		c.decision.Reasons[w.ID] = eta.Reason{Text: q.Waits(h, w.Needs, t.limits.used[h], c.keptOf(h, w)), By: eta.UserLimit}
	}
	if short(q.Left(placement.Resources{}), w.Needs) != (placement.Resources{}) {
		delete(t.limited, w.ID)
		return
	}
	if known := t.limited[w.ID]; known == nil || known.by != h {
		since := c.now
		if known != nil {
			since = known.since
		}
		t.limited[w.ID] = &limited{passedOver{w, since}, h}
	}
}
