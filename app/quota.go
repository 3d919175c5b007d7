package app

import (
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
	return RefuseFull(organization, q.Bytes, used.Bytes)
}

// RefuseFull refuses more of an organization that stores as many bytes as its quota,
// 0 for none, allows.
func RefuseFull(organization string, quota, used int64) error {
	if quota == 0 || used < quota {
		return nil
	}
	return fault.Errorf(fault.QuotaExceeded, "organization %q may store %s and stores %s, so that no more files or results fit; delete files or jobs that are no longer needed, or ask an administrator",
		organization, unit.Bytes(quota), unit.Bytes(used))
}
