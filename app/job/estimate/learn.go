package estimate

import (
	"context"
	"slices"

	"molrun/app"
	"molrun/app/algorithm"
	"molrun/app/base/strictjson"
	"molrun/app/job/eta"
)

// mostLearned is how many jobs of each organization Learn looks at: those that ended
// last.
const mostLearned = 300

// Learn fills the history of run times from jobs that a version without one completed,
// and returns how many run times it has added. A class that has a history stays as it is.
func Learn(ctx context.Context, store app.Store, runs *app.Runs, catalogue *algorithm.Catalogue) (learned int, err error) {
	jobs, err := unlearned(ctx, store)
	if err != nil {
		return 0, err
	}
	past := map[string][]eta.Run{}
	for _, j := range jobs {
		if a, known := catalogue.Find(j.Type, j.Version); known {
			work, err := workOf(ctx, runs, j, a)
			if err != nil {
				continue // where it ran is no longer known
			}
			past[work.Class] = append(past[work.Class], eta.Run{Size: work.Size, Seconds: j.Metrics.RunSeconds})
		}
	}
	if len(past) == 0 {
		return 0, nil
	}
	err = store.Update(ctx, func(tx app.Tx) error {
		learned = 0
		for class, all := range past {
			if known, err := tx.Runs(class); err != nil || len(known) > 0 {
				continue
			}
			for _, r := range all[max(0, len(all)-eta.MaxRuns):] {
				if err := tx.AddRun(class, r); err != nil {
					return err
				}
				learned++
			}
		}
		return nil
	})
	return learned, err
}

// unlearned returns completed jobs of older versions in the order of completion.
func unlearned(ctx context.Context, store app.Store) (jobs []*app.Job, err error) {
	err = store.View(ctx, func(tx app.Tx) error {
		jobs = nil
		organizations, err := tx.Organizations()
		if err != nil {
			return err
		}
		for _, organization := range organizations {
			newest, err := tx.Newest(organization, "", mostLearned)
			if err != nil {
				return err
			}
			for _, ended := range newest {
				j, err := tx.Job(ended.ID)
				if err != nil {
					return err
				}
				if j.Status == app.Completed && !j.IsBatch() && j.Attempts == 1 && j.Metrics != nil && j.Private.Class == "" {
					jobs = append(jobs, j)
				}
			}
		}
		return nil
	})
	slices.SortFunc(jobs, func(a, b *app.Job) int { return a.CompletedAt.Compare(b.CompletedAt.Time) })
	return jobs, err
}

// workOf returns the class and size that a job would have if it were submitted now.
func workOf(ctx context.Context, runs *app.Runs, j *app.Job, a *algorithm.File) (w eta.Work, err error) {
	where, err := runs.PlacementOf(ctx, j)
	if err != nil {
		return w, err
	}
	settings, err := strictjson.Parse(j.Private.Normalized)
	if err != nil {
		return w, err
	}
	class := app.ClassOf(a, j.Executor, where, j.Private.Needs.GPUs)
	return eta.Work{Class: class, Size: a.Size(settings, app.FactsOf(j.Private.References))}, nil
}
