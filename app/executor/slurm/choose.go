package slurm

import (
	"slices"

	"molrun/app"
)

// choose finds the job of a task among those of its name. There is one, but
// where a submission whose answer was lost was repeated and both came to be:
// then the one counts that has claimed the attempt, before that the oldest, and
// the others are cancelled while they wait; one that starts finds the claim.
// False says that Slurm does not know the job that counts.
func (e *Executor) choose(t app.Task, k *tracked) (record, bool, error) {
	records := e.view.records[k.row]
	switch {
	case len(records) == 0:
		return record{}, false, nil
	case len(records) == 1 && !turnedAway(records[0]):
		return records[0], true, nil
	}
	id, isClaimed, err := claimed(t.Dir)
	if err != nil {
		return record{}, false, err
	}
	counts, known := pick(records, id, isClaimed)
	for _, r := range records {
		if states[r.state] == queued && known && r.submission() != counts.submission() {
			e.log("a second job for one task is cancelled", "job", string(t.Job), "slurm", r.target(), "name", r.Name)
			e.canceler.tryAdd(r.target(), drop)
		}
	}
	return counts, known, nil
}

// turnedAway reports whether the job found the attempt claimed.
func turnedAway(r record) bool { return states[r.state].over() && r.code == exitClaimed }

// pick gives the job that counts. One that claimed and could not say who it is
// may be any that was not turned away.
func pick(records []record, claimant string, isClaimed bool) (record, bool) {
	records = slices.SortedFunc(slices.Values(records), func(a, b record) int {
		if a.older(b) {
			return -1
		}
		return 1
	})
	if isClaimed && claimant != "" {
		i := slices.IndexFunc(records, func(r record) bool { return r.id == claimant })
		if i < 0 {
			return record{}, false
		}
		return records[i], true
	}
	if i := slices.IndexFunc(records, func(r record) bool { return !turnedAway(r) }); i >= 0 {
		return records[i], true
	}
	return records[0], true
}
