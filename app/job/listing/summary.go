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

// maxCount is how far a listing counts.
const maxCount = 10_000

// Count is a number of jobs, at least that if there may be more.
type Count struct {
	Jobs int
	More bool
}

// Summary counts jobs by what they have in common. A batch counts as one job.
type Summary struct {
	Count    Count
	Statuses app.Counts
	Types    map[string]*app.Counts
	Users    map[string]*app.Counts // by e-mail address
}

// Summary counts jobs, exactly if they are selected by user, type and status alone,
// else as far as a listing gets at once.
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

// addSummed adds the jobs of a filter that the store has counted.
func (s *Summary) addSummed(tx app.Tx, f app.JobFilter) error {
	for share, err := range shares(tx, f) {
		if err != nil {
			return err
		}
		s.add(share)
	}
	return nil
}

// sum counts the jobs of a filter that the store has counted, as far as a listing
// counts: it need not look at them.
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

// sumStatuses counts the jobs of an organization by the four numbers of it.
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

// shares walks the counts that the store keeps of the jobs of a filter.
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

// addListed adds the jobs that a listing finds, up to maxCount or as many as it
// takes to look for.
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

// shareOf returns what a record adds to a summary. Of ten thousand records, it decodes
// these members alone.
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
	if share.Type != "" { // a pipeline may have several
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
