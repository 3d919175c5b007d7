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

// choose finds the job of a task among those with its row. There is only one,
// unless a submission whose answer was lost was repeated and both succeeded. Then
// the one that claimed the attempt counts, before that the oldest. The others are
// cancelled while they are queued; one that starts finds the claim. False says
// that Slurm does not know the job that counts.
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

// turnedAway reports whether the job found that another had claimed the attempt.
func turnedAway(r jobRecord) bool { return r.Kind().Over() && r.Code == exitClaimed }

// pick returns the job that counts. If the claimant is unknown, it may be any job
// that was not turned away.
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

// claimed returns the job that claimed an attempt. id is "" if the job died before
// it could record it.
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
