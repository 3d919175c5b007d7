package simulation

import (
	"math/rand/v2"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/job/quota"
)

// limits are the quotas of users and organizations.
type limits map[quota.Holder]quota.Quota

// limitsOf returns random limits for a plan. Half of the plans have none.
func limitsOf(seed uint64) limits {
	rng := rand.New(rand.NewPCG(seed, 3))
	all := limits{}
	if rng.IntN(2) == 0 {
		return all
	}
	for _, by := range append([]app.Caller{{Organization: "lab"}, {Organization: "firm"}}, users...) {
		q := quota.Quota{}
		if rng.IntN(3) == 0 {
			q.CPUs = 2 + rng.IntN(3)
		}
		if rng.IntN(4) == 0 {
			q.GPUs = 1
		}
		if rng.IntN(4) == 0 {
			q.Queued = 2 + rng.IntN(6)
		}
		if rng.IntN(4) == 0 {
			q.Bytes = 30 + rng.Int64N(200)
		}
		all[quota.Holder{Organization: by.Organization, User: by.Email}] = q
	}
	return all
}

func (l limits) of(organization, user string) quota.Quota {
	return l[quota.Holder{Organization: organization, User: user}]
}

// holders returns the limits that apply to a user, by e-mail address: the organization's,
// with the key "", and the user's own.
func (l limits) holders(organization, email string) map[string]quota.Quota {
	return map[string]quota.Quota{"": l.of(organization, ""), email: l.of(organization, email)}
}

// canEverRun reports whether the limits allow a job to run at any time.
func (l limits) canEverRun(by app.Caller, w jobSettings) bool {
	for _, q := range l.holders(by.Organization, by.Email) {
		if q.CPUs > 0 && w.cpus > q.CPUs || q.GPUs > 0 && w.gpus > q.GPUs {
			return false
		}
	}
	return true
}

// admits reports whether a user can queue the given number of additional jobs.
func (s *simulation) admits(organization, email string, jobs int) bool {
	for user, q := range s.limits.holders(organization, email) {
		queued := 0
		for _, e := range s.ledger.jobs {
			if e.Organization == organization && (user == "" || e.Email == user) && !e.IsBatch() && e.Status == app.Queued {
				queued++
			}
		}
		if jobs > 0 && (q.Queued > 0 && queued+jobs > q.Queued || q.Bytes > 0 && s.stored(organization, user) >= q.Bytes) {
			return false
		}
	}
	return true
}

// usedBy returns the resources used by the claimed jobs of a user or, if user is "", of
// an organization.
func (s *simulation) usedBy(organization, user string, uses func(*entry) bool) (used placement.Resources) {
	for _, e := range s.holders(uses) {
		if e.Organization == organization && (user == "" || e.Email == user) {
			used.CPUs += e.Private.Needs.CPUs
			used.GPUs += e.Private.Needs.GPUs
		}
	}
	return used
}

// judgeLimits checks that no user or organization exceeds its limits.
func (s *simulation) judgeLimits(uses func(*entry) bool) {
	for h, q := range s.limits {
		if used := s.usedBy(h.Organization, h.User, uses); q.CPUs > 0 && used.CPUs > q.CPUs || q.GPUs > 0 && used.GPUs > q.GPUs {
			s.faultf("%s uses %+v; the limit is %+v", h, used, q)
		}
	}
}

// heldUp reports whether a limit might prevent a job from starting: too much is in use,
// or the rest might be reserved for a job that has waited longer.
func (s *simulation) heldUp(e *entry) bool {
	for user, q := range s.limits.holders(e.Organization, e.Email) {
		if q.CPUs == 0 && q.GPUs == 0 {
			continue
		}
		used := s.usedBy(e.Organization, user, func(*entry) bool { return true })
		left := placement.Resources{CPUs: 1000, GPUs: 1000, MemoryBytes: 1 << 40}
		if q.CPUs > 0 {
			left.CPUs = q.CPUs - used.CPUs
		}
		if q.GPUs > 0 {
			left.GPUs = q.GPUs - used.GPUs
		}
		if !fits(e.Private.Needs, left) {
			return true
		}
		for _, other := range s.ledger.jobs {
			kept := other != e && other.waits() && other.Organization == e.Organization && (user == "" || other.Email == user) &&
				s.mayHaveReservation(other) && other.Priority >= e.Priority
			if kept && !fits(e.Private.Needs, without(left, other.Private.Needs)) {
				return true
			}
		}
	}
	return false
}

// mightExceedStorage reports whether a user might exceed a storage limit with the given
// number of additional bytes, counting bytes that are being sent.
func (s *simulation) mightExceedStorage(by app.Caller, bytes int) bool {
	for user, q := range s.limits.holders(by.Organization, by.Email) {
		coming := s.stored(by.Organization, user) + int64(bytes)
		for _, r := range s.requests {
			if r.by.Organization != by.Organization || user != "" && r.by.Email != user {
				continue
			}
			coming += int64(r.sends())
		}
		if q.Bytes > 0 && coming >= q.Bytes {
			return true
		}
	}
	return false
}

// sends returns the maximum number of bytes that a request can store.
func (r *request) sends() int {
	if r.part == nil {
		return 0
	}
	return len(r.part.of.text)
}

// judgeRefusal checks that a rejected file might have exceeded a limit.
func (s *simulation) judgeRefusal(r *request) {
	if !r.crowded && !s.mightExceedStorage(r.by, r.sends()) {
		s.faultf("%s: rejected, although within the limits", r.label)
	}
}

// judgeBytes checks that a commit that stores more bytes stays within the limits.
func (s *simulation) judgeBytes(c *change, before map[quota.Holder]int64) {
	for h, q := range s.limits {
		if now := s.stored(h.Organization, h.User); q.Bytes > 0 && now > q.Bytes && now > before[h] {
			s.faultf("%s: %s stores %d bytes; the limit is %d", c.label, h, now, q.Bytes)
		}
	}
}

// storedByAll returns the number of bytes stored by every user and organization that has
// limits.
func (s *simulation) storedByAll() map[quota.Holder]int64 {
	all := map[quota.Holder]int64{}
	for h := range s.limits {
		all[h] = s.stored(h.Organization, h.User)
	}
	return all
}

// overLimitAnswer returns the response to a request that exceeds the limits, or nil if it
// does not.
func (s *simulation) overLimitAnswer(organization, email string, jobs int) *answer {
	if s.admits(organization, email, jobs) {
		return nil
	}
	return &answer{code: fault.QuotaExceeded}
}
