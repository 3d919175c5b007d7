package slurm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"molrun/app"
	"molrun/app/task"
)

// choose selects the Slurm job of a task among those with its row. There is only one,
// unless a submission with unknown result was repeated and both succeeded. Then the valid
// job is the one that claimed the attempt or, before there is a claim, the oldest. The
// others are canceled while they are queued; one that starts finds the claim. The result
// is false if Slurm does not list the valid job.
func (e *Executor) choose(t app.Task, k *tracked) (jobRecord, bool, error) {
	records := e.snapshot.records[k.row]
	switch {
	case len(records) == 0:
		return jobRecord{}, false, nil
	case len(records) == 1 && !turnedAway(records[0]):
		return records[0], true, nil
	}
	id, isClaimed, err := claimed(t.Dir)
	if err != nil {
		return jobRecord{}, false, err
	}
	counts, known := pick(records, id, isClaimed)
	for _, r := range records {
		if r.Kind() == kindQueued && known && r.Submission() != counts.Submission() {
			e.options.Log("cancelling a second Slurm job of one task", "job", string(t.Job), "slurm", r.Target(), "name", r.Name)
			e.canceler.tryAdd(r, cancelIfQueued)
		}
	}
	return counts, known, nil
}

// turnedAway reports whether the job exited because another had claimed the attempt.
func turnedAway(r jobRecord) bool { return r.Kind().Over() && r.Code == exitClaimed }

// pick returns the valid job. If the claimant is unknown, it can be any job that was not
// turned away.
func pick(records []jobRecord, claimant string, isClaimed bool) (jobRecord, bool) {
	records = slices.SortedFunc(slices.Values(records), func(a, b jobRecord) int {
		if a.Older(b) {
			return -1
		}
		return 1
	})
	if isClaimed && claimant != "" {
		i := slices.IndexFunc(records, func(r jobRecord) bool { return r.ID == claimant })
		if i < 0 {
			return jobRecord{}, false
		}
		return records[i], true
	}
	if i := slices.IndexFunc(records, func(r jobRecord) bool { return !turnedAway(r) }); i >= 0 {
		return records[i], true
	}
	return records[0], true
}

// claimed returns the ID of the Slurm job that claimed an attempt; "" if the job died
// before it could record its ID.
func claimed(dir string) (id string, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(dir, task.ClaimDir, "job"))
	if err == nil {
		return strings.TrimSpace(string(text)), true, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	_, err = os.Lstat(filepath.Join(dir, task.ClaimDir))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return "", err == nil, err
}
