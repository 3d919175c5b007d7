package listing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/strictjson"
)

// maxCount is the highest number that a listing counts to.
const maxCount = 10_000

// Count is a number of jobs; More means that there might be more.
type Count struct {
	Jobs int
	More bool
}

// Summary counts jobs by status, type and user. A batch counts as one job.
type Summary struct {
	Count    Count
	Statuses app.Counts
	Types    map[string]*app.Counts
	Users    map[string]*app.Counts // by e-mail address
}

// Summary counts jobs. The counts are exact if jobs are selected only by user, type and
// status; otherwise they are limited like a listing's.
func (l *Lists) Summary(ctx context.Context, by app.Caller, s Selection, faults []fault.Field) (*Summary, error) {
	f, more := s.Filter(by)
	if err := fault.List(slices.Concat(faults, more)...); err != nil {
		return nil, err
	}
	sum := &Summary{Types: map[string]*app.Counts{}, Users: map[string]*app.Counts{}}
	err := l.store.View(ctx, func(tx app.Tx) error {
		if _, err := s.within(tx, &f); err != nil {
			return err
		}
		if summed(f) {
			return sum.addSummed(tx, f)
		}
		return sum.addListed(tx, f)
	})
	if err != nil && !errors.Is(err, errNoBatch) {
		return nil, err
	}
	return sum, nil
}

// summed reports whether the store keeps counts for a filter.
func summed(f app.JobFilter) bool {
	return f.Name == "" && f.Batch == "" && len(f.Tags) == 0 && f.Search == "" &&
		f.From.IsZero() && f.Until.IsZero() && !f.ByCompletion
}

// addSummed adds the stored counts of a filter's jobs.
func (s *Summary) addSummed(tx app.Tx, f app.JobFilter) error {
	for share, err := range shares(tx, f) {
		if err != nil {
			return err
		}
		s.add(share)
	}
	return nil
}

// sum adds the stored counts of a filter's jobs, up to maxCount, without reading the
// jobs.
func (c *Count) sum(tx app.Tx, f app.JobFilter) error {
	if f.Email == "" && f.Type == "" {
		return c.sumStatuses(tx, f)
	}
	for share, err := range shares(tx, f) {
		if err != nil {
			return err
		}
		c.add(share.Jobs)
	}
	return nil
}

// sumStatuses adds an organization's counts of the selected statuses.
func (c *Count) sumStatuses(tx app.Tx, f app.JobFilter) error {
	counts, err := tx.Statuses(f.Organization, "")
	for _, status := range app.Statuses {
		if len(f.Statuses) == 0 || slices.Contains(f.Statuses, status) {
			c.add(*counts.Of(status))
		}
	}
	return err
}

func (c *Count) add(jobs int) {
	c.Jobs += jobs
	if c.Jobs > maxCount {
		c.Jobs, c.More = maxCount, true
	}
}

// shares walks the stored counts of a filter's jobs.
func shares(tx app.Tx, f app.JobFilter) iter.Seq2[app.JobShare, error] {
	return func(yield func(app.JobShare, error) bool) {
		for share, err := range tx.JobShares(f.Organization, f.Email) {
			j := app.Job{Organization: f.Organization, Email: share.Email, Type: share.Type, Status: share.Status}
			if (err != nil || f.Selects(&j)) && !yield(share, err) {
				return
			}
		}
	}
}

// addListed adds the jobs found by listing, up to maxCount or the listing's search limit.
func (s *Summary) addListed(tx app.Tx, f app.JobFilter) error {
	var after app.Position
	for s.Count.Jobs < maxCount {
		page, err := tx.Jobs(f, after, app.MaxPage)
		if err != nil {
			return err
		}
		for _, stored := range page.Jobs {
			share, err := shareOf(stored.JSON)
			if err != nil {
				return fmt.Errorf("count job %s: %w", stored.ID, err)
			}
			s.add(share)
		}
		after = page.Next
		s.Count.More = after != ""
		if !s.Count.More || len(page.Jobs) < app.MaxPage {
			break
		}
	}
	return nil
}

// shareOf returns a record's contribution to a summary. It decodes only the needed
// members, since there can be ten thousand records.
func shareOf(record json.RawMessage) (app.JobShare, error) {
	share := app.JobShare{Jobs: 1}
	into := map[string]any{"type": &share.Type, "status": &share.Status, "jobEmail": &share.Email}
	var err error
	strictjson.Peek(record, func(name, value []byte) bool {
		if to, wanted := into[string(name)]; wanted {
			err = errors.Join(err, json.Unmarshal(value, to))
			delete(into, string(name))
		}
		return len(into) > 0
	})
	return share, err
}

func (s *Summary) add(share app.JobShare) {
	s.Count.Jobs += share.Jobs
	*s.Statuses.Of(share.Status) += share.Jobs
	if share.Type != "" { // a pipeline can have several types
		addTo(s.Types, share.Type, share)
	}
	addTo(s.Users, share.Email, share)
}

func addTo(group map[string]*app.Counts, name string, share app.JobShare) {
	if group[name] == nil {
		group[name] = &app.Counts{}
	}
	*group[name].Of(share.Status) += share.Jobs
}
