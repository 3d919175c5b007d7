package simulation

import (
	"math/rand/v2"

	"molrun/app"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/job/quota"
)

// limits are what users and organizations may use.
type limits map[quota.Holder]quota.Quota

// limitsOf draws the limits of a plan. Half of the plans have none.
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

// holders returns those whose limits bind a user, with the limits.
func (l limits) holders(organization, email string) map[string]quota.Quota {
	return map[string]quota.Quota{"": l.of(organization, ""), email: l.of(organization, email)}
}

// mayEver reports whether a job could run within the limits.
func (l limits) mayEver(by app.Caller, w jobSettings) bool {
	for _, q := range l.holders(by.Organization, by.Email) {
		if q.CPUs > 0 && w.cpus > q.CPUs || q.GPUs > 0 && w.gpus > q.GPUs {
			return false
		}
	}
	return true
}

// admits reports whether so many more jobs of a user may be queued.
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

// usedBy returns what claimed jobs of a user or, with user "", an organization have in use.
func (s *simulation) usedBy(organization, user string, uses func(*entry) bool) (used placement.Resources) {
	for _, e := range s.holders(uses) {
		if e.Organization == organization && (user == "" || e.Email == user) {
			used.CPUs += e.Private.Needs.CPUs
			used.GPUs += e.Private.Needs.GPUs
		}
	}
	return used
}

// judgeLimits checks that no user and no organization exceeds its limits.
func (s *simulation) judgeLimits(uses func(*entry) bool) {
	for h, q := range s.limits {
		if used := s.usedBy(h.Organization, h.User, uses); q.CPUs > 0 && used.CPUs > q.CPUs || q.GPUs > 0 && used.GPUs > q.GPUs {
			s.faultf("%s has %+v in use, and may have %+v", h, used, q)
		}
	}
}

// heldUp reports whether a limit may hold a job up: too much is in use, or the rest may be
// kept for a job that has waited longer.
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

// crowded reports whether so many more bytes of a user, with those on their way, may
// exceed a limit.
func (s *simulation) crowded(by app.Caller, bytes int) bool {
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

// sends returns how many bytes a request may add.
func (r *request) sends() int {
	if r.part == nil {
		return 0
	}
	return len(r.part.of.text)
}

// judgeRefusal checks that a file was refused for a reason.
func (s *simulation) judgeRefusal(r *request) {
	if !r.crowded && !s.crowded(r.by, r.sends()) {
		s.faultf("%s: refused, although the limits allow it", r.label)
	}
}

// judgeBytes checks that a commit which adds bytes of files stays within the limits.
func (s *simulation) judgeBytes(c *change, before map[quota.Holder]int64) {
	for h, q := range s.limits {
		if now := s.stored(h.Organization, h.User); q.Bytes > 0 && now > q.Bytes && now > before[h] {
			s.faultf("%s: %s stores %d bytes, and may store %d", c.label, h, now, q.Bytes)
		}
	}
}

// storedByAll returns what everybody who is limited stores.
func (s *simulation) storedByAll() map[quota.Holder]int64 {
	all := map[quota.Holder]int64{}
	for h := range s.limits {
		all[h] = s.stored(h.Organization, h.User)
	}
	return all
}

// refusedBeyond returns the answer to who wants more than limits allow, nil if they do.
func (s *simulation) refusedBeyond(organization, email string, jobs int) *answer {
	if s.admits(organization, email, jobs) {
		return nil
	}
	return &answer{code: fault.QuotaExceeded}
}
