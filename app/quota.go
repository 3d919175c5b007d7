package app

import (
	"context"
	"sync"

	"molrun/app/fault"
	"molrun/app/unit"
)

// admitJobs refuses jobs beyond the quota of their organization. Results of
// admitted jobs are kept even if they exceed it; then no further job is
// admitted.
func (c *core) admitJobs(tx Tx, organization string, jobs int) error {
	q := c.quota(organization)
	if q == (Quota{}) || jobs == 0 {
		return nil
	}
	used, err := tx.Stored(organization)
	switch {
	case err != nil:
		return err
	case q.Queued > 0 && used.Queued+jobs > q.Queued:
		return fault.Errorf(fault.QuotaExceeded, "organization %q may have %d jobs queued and has %d, so that %d more don't fit; wait until some have started, cancel some, or ask an administrator",
			organization, q.Queued, used.Queued, jobs)
	}
	return refuseFull(organization, q.Bytes, used.Bytes)
}

// admitUpload refuses an upload if the quota is exhausted, before anything is
// sent.
func (c *core) admitUpload(tx Tx, organization string) error {
	quota := c.quota(organization).Bytes
	if quota == 0 {
		return nil
	}
	used, err := tx.Stored(organization)
	if err != nil {
		return err
	}
	return refuseFull(organization, quota, used.Bytes)
}

func refuseFull(organization string, quota, used int64) error {
	if quota == 0 || used < quota {
		return nil
	}
	return fault.Errorf(fault.QuotaExceeded, "organization %q may store %s and stores %s, so that there is no room for more files or results; delete files or jobs that are no longer needed, or ask an administrator",
		organization, unit.Bytes(quota), unit.Bytes(used))
}

// admitBytes refuses size bytes that replace the current bytes of an upload, if
// they exceed the quota. coming is what other uploads have reserved.
func (c *core) admitBytes(tx Tx, u *Upload, size, coming int64) error {
	quota := c.quota(u.Organization).Bytes
	if quota == 0 {
		return nil
	}
	used, err := tx.Stored(u.Organization)
	if err != nil {
		return err
	}
	// A smaller file is welcome even beyond the quota.
	if size > u.Size && used.Bytes-u.Size+coming+size > quota {
		return fault.Errorf(fault.QuotaExceeded, "organization %q may store %s and stores %s%s, so that %q of %s does not fit; delete files or jobs that are no longer needed, or ask an administrator",
			u.Organization, unit.Bytes(quota), unit.Bytes(used.Bytes), andComing(coming), u.Filename, unit.Bytes(size))
	}
	return nil
}

func andComing(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return ", and " + unit.Bytes(bytes).String() + " are being uploaded"
}

// arrivals counts the bytes reserved by uploads in progress, by organization,
// so that two concurrent uploads that don't both fit are not both received to
// the end.
type arrivals struct {
	mu     sync.Mutex
	coming map[string]int64
}

func (a *arrivals) add(organization string, bytes int64) {
	if a.coming == nil {
		a.coming = map[string]int64{}
	}
	if a.coming[organization] += bytes; a.coming[organization] == 0 {
		delete(a.coming, organization)
	}
}

// Reservation is the part of a quota that a PUT holds while it lasts.
type Reservation struct {
	*core
	arrivals *arrivals
	upload   *Upload
	size     int64
}

// Grow raises the reservation to size bytes in all, or refuses. A nil
// reservation is unlimited.
func (r *Reservation) Grow(ctx context.Context, size int64) error {
	if r == nil || size <= r.size || r.quota(r.upload.Organization).Bytes == 0 {
		return nil
	}
	a := r.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	err := r.store.View(ctx, func(tx Tx) error {
		return r.admitBytes(tx, r.upload, size, a.coming[r.upload.Organization]-r.size)
	})
	if err == nil {
		a.add(r.upload.Organization, size-r.size)
		r.size = size
	}
	return err
}

// Release ends the reservation. It is idempotent.
func (r *Reservation) Release() {
	if r == nil || r.size == 0 {
		return
	}
	a := r.arrivals
	a.mu.Lock()
	defer a.mu.Unlock()
	a.add(r.upload.Organization, -r.size)
	r.size = 0
}
