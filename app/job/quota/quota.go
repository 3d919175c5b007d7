// Package quota defines the limits of users and organizations, and describes when they
// are exceeded. It also defines daily usage counters, which keep counting deleted jobs
// and uploads.
package quota

import (
	"fmt"
	"math"

	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

// Quota limits the usage of a holder; 0 means no limit.
type Quota struct {
	Bytes  int64 // of uploads and results
	Queued int   // number of queued jobs
	CPUs   int   // of all running jobs together
	GPUs   int   // likewise
}

// Holder is a user or, if User is "", a whole organization.
type Holder struct{ Organization, User string }

func (h Holder) String() string {
	if h.User == "" {
		return fmt.Sprintf("organization %q", h.Organization)
	}
	return fmt.Sprintf("user %q", h.User)
}

// Holders returns the holders whose quotas apply to a user.
func Holders(organization, user string) [2]Holder {
	return [2]Holder{{Organization: organization}, {Organization: organization, User: user}}
}

// Of returns the quota of a user or, with user "", of an organization. A nil Of means no
// limits.
type Of func(organization, user string) Quota

// For returns the quota of a holder.
func (of Of) For(h Holder) Quota {
	if of == nil {
		return Quota{}
	}
	return of(h.Organization, h.User)
}

// Admit returns an error if the holder, with this many jobs queued and bytes stored,
// can't submit that many new jobs.
func (q Quota) Admit(h Holder, jobs, queued int, bytes int64) error {
	if q.Queued > 0 && queued+jobs > q.Queued {
		return fault.Errorf(fault.QuotaExceeded, "the queue limit of %s is %d jobs (%d queued, %d requested); wait until some have started, cancel some, or ask an administrator",
			h, q.Queued, queued, jobs)
	}
	return q.RefuseFull(h, bytes)
}

// RefuseFull returns an error if a holder's storage quota is used up.
func (q Quota) RefuseFull(h Holder, used int64) error {
	if q.Bytes == 0 || used < q.Bytes {
		return nil
	}
	return fault.Errorf(fault.QuotaExceeded, "the storage limit of %s is %s (%s used); delete files or jobs that are no longer needed, or ask an administrator",
		h, unit.Bytes(q.Bytes), unit.Bytes(used))
}

// Beyond returns why a job could never run under the CPU and GPU limits of its user or
// organization, or "" if it could.
func (of Of) Beyond(organization, user string, needs placement.Resources) string {
	for _, h := range Holders(organization, user) {
		if what, limit := of.For(h).exceeded(needs); what != "" {
			return fmt.Sprintf("the job needs %s, but the limit of %s is %s at a time; choose smaller settings, or ask an administrator",
				what, h, limit)
		}
	}
	return ""
}

// exceeded returns the first need that exceeds the quota, and the limit, or "" if none
// does.
func (q Quota) exceeded(needs placement.Resources) (what, limit string) {
	switch {
	case q.CPUs > 0 && needs.CPUs > q.CPUs:
		return unit.Count(needs.CPUs, "CPU"), unit.Count(q.CPUs, "CPU")
	case q.GPUs > 0 && needs.GPUs > q.GPUs:
		return unit.Count(needs.GPUs, "GPU"), unit.Count(q.GPUs, "GPU")
	}
	return "", ""
}

// unbounded is more than any job needs.
const unbounded = math.MaxInt32

// Left returns the resources that remain to a holder whose jobs use used.
func (q Quota) Left(used placement.Resources) placement.Resources {
	left := placement.Resources{CPUs: unbounded, MemoryBytes: math.MaxInt64 / 2, GPUs: unbounded}
	if q.CPUs > 0 {
		left.CPUs = q.CPUs - used.CPUs
	}
	if q.GPUs > 0 {
		left.GPUs = q.GPUs - used.GPUs
	}
	return left
}

// Binds reports whether the quota limits the CPUs or GPUs in use.
func (q Quota) Binds() bool { return q.CPUs > 0 || q.GPUs > 0 }

// Waits returns why a job with these needs waits because of the quota of its holder. used
// is the resources that the holder's running jobs use, and kept those reserved for
// another job.
func (q Quota) Waits(h Holder, needs, used, kept placement.Resources) string {
	if what, limit := q.exceeded(needs); what != "" {
		return fmt.Sprintf("waiting: the job needs %s, but the limit of %s is %s at a time; ask an administrator", what, h, limit)
	}
	what, limit, has := "GPU", q.GPUs, used.GPUs
	if q.CPUs > 0 && used.CPUs+kept.CPUs+needs.CPUs > q.CPUs {
		what, limit, has = "CPU", q.CPUs, used.CPUs
	}
	text := fmt.Sprintf("waiting: the limit of %s is %s at a time (%d in use)", h, unit.Count(limit, what), has)
	if kept != (placement.Resources{}) {
		text += "; the rest is reserved for a job that has waited longer"
	}
	return text
}
