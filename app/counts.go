package app

import (
	"encoding/json"
	"fmt"

	"molrun/app/unit"
)

// putChanged stores a job whose status was from, and updates the counts and the
// status of its batch. It returns the batch if that changed.
func putChanged(tx Tx, j *Job, from Status) (batch JobID, err error) {
	if err := tx.PutJob(j); err != nil || j.Private.Batch == "" || from == j.Status {
		return "", err
	}
	parent, err := tx.Job(j.Private.Batch)
	if err != nil {
		return "", fmt.Errorf("batch of %s: %w", j.ID, err)
	}
	parent.count(j, from)
	return parent.ID, tx.PutJob(parent)
}

// count moves a subjob from one status to its present one. For a short subjob,
// its end may be the first thing reported.
func (parent *Job) count(j *Job, from Status) {
	*parent.Counts.Of(from)--
	*parent.Counts.Of(j.Status)++
	switch {
	case parent.Status == Queued && !j.StartedAt.IsZero():
		parent.Status = Running
		if parent.StartedAt.IsZero() {
			parent.StartedAt = j.StartedAt
		}
	case j.Status == Queued && parent.Status.Finished(): // a retry
		parent.Status, parent.StatusReason, parent.CompletedAt = Queued, "", unit.Time{}
	}
	if j.Status == Completed && j.ResultBytes != nil {
		total := *j.ResultBytes
		if parent.ResultBytes != nil {
			total += *parent.ResultBytes
		}
		parent.ResultBytes = &total
	}
	parent.conclude(j.CompletedAt)
}

// conclude finishes a batch once all its rows have finished.
func (parent *Job) conclude(at unit.Time) {
	c := parent.Counts
	if c.Queued+c.Running > 0 {
		return
	}
	parent.Status, parent.StatusReason = Completed, ""
	if c.Failed > 0 {
		parent.Status, parent.StatusReason = Failed, c.reason()
	}
	if parent.CompletedAt.Before(at.Time) {
		parent.CompletedAt = at
	}
}

// reason is the statusReason of a failed batch.
func (c *Counts) reason() string {
	if c.Failed == 0 {
		return "the subjobs that failed were deleted"
	}
	return fmt.Sprintf("%d of %d subjobs failed", c.Failed, c.Total())
}

// forget removes a finished subjob that is being deleted from the counts. The
// status stays: deleting failed rows does not complete a batch.
func (parent *Job) forget(row *Job) {
	*parent.Counts.Of(row.Status)--
	if row.ResultBytes != nil && parent.ResultBytes != nil {
		rest := *parent.ResultBytes - *row.ResultBytes
		parent.ResultBytes = &rest
	}
	if parent.Status == Failed {
		parent.StatusReason = parent.Counts.reason()
	}
}

// Summary counts jobs by what they have in common. A batch counts as one job.
type Summary struct {
	Count    Count
	Statuses Counts
	Types    map[string]*Counts
	Users    map[string]*Counts // by e-mail address
}

// JobShare is how many jobs a user has of one type and status.
type JobShare struct {
	Email, Type string
	Status      Status
	Jobs        int
}

func (s *Summary) add(share JobShare) {
	s.Count.Jobs += share.Jobs
	*s.Statuses.Of(share.Status) += share.Jobs
	addTo(s.Types, share.Type, share)
	addTo(s.Users, share.Email, share)
}

func addTo(group map[string]*Counts, name string, share JobShare) {
	if group[name] == nil {
		group[name] = &Counts{}
	}
	*group[name].Of(share.Status) += share.Jobs
}

// summed reports whether the store keeps counts for a filter.
func (f JobFilter) summed() bool {
	return f.Name == "" && f.Batch == "" && len(f.Tags) == 0 && f.Search == "" &&
		f.From.IsZero() && f.Until.IsZero() && !f.ByCompletion
}

// addSummed adds the jobs of a filter that the store has counted.
func (s *Summary) addSummed(tx Tx, f JobFilter) error {
	for share, err := range tx.JobShares(f.Organization, f.Email) {
		if err != nil {
			return err
		}
		if f.Selects(&Job{Organization: f.Organization, Email: share.Email, Type: share.Type, Status: share.Status}) {
			s.add(share)
		}
	}
	return nil
}

// addListed adds the jobs that a listing finds, up to maxCount or as many as it
// takes to look for.
func (s *Summary) addListed(tx Tx, f JobFilter) error {
	var after Position
	for s.Count.Jobs < maxCount {
		page, err := tx.Jobs(f, after, MaxPage)
		if err != nil {
			return err
		}
		for _, stored := range page.Jobs {
			var j Job
			if err := json.Unmarshal(stored.JSON, &j); err != nil {
				return fmt.Errorf("count job %s: %w", stored.ID, err)
			}
			s.add(JobShare{j.Email, j.Type, j.Status, 1})
		}
		after = page.Next
		s.Count.More = after != ""
		if !s.Count.More || len(page.Jobs) < MaxPage {
			break
		}
	}
	return nil
}
