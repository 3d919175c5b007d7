package retention

import (
	"context"
	"slices"
	"time"

	"molrun/app"
	"molrun/app/base/fault"
)

// PruneRequest selects finished jobs to delete. An empty field selects all.
type PruneRequest struct {
	EndedBefore        time.Time
	Failed             bool // only failed jobs
	Organization, User string
	Algorithm          string
	LargerThan         int64 // bytes of the result
	DryRun             bool
	After              *PrunePosition // nil means from the beginning
}

// PrunePosition is where a page of a prune ended.
type PrunePosition struct {
	Organization string    `json:"organization"`
	At           time.Time `json:"at"`
	ID           app.JobID `json:"id"`
}

// Pruned is a page of deleted jobs, or of jobs that would be deleted. Next is nil on the
// last page.
type Pruned struct {
	Jobs []app.Expired
	Next *PrunePosition
}

const (
	prunePageJobs = 200
	prunePageTime = 20 * time.Second // after which a page ends early
)

// Prune deletes the finished jobs selected by the operator, by organization and then
// oldest end first. It keeps pinned jobs and jobs whose result an unfinished job needs.
func (k *Keeper) Prune(ctx context.Context, r PruneRequest) (*Pruned, error) {
	organizations, err := k.pruneOrganizations(ctx, r)
	if err != nil {
		return nil, err
	}
	p := &prunePage{plan: prunePlan{request: r, verdicts: map[app.UploadID]verdict{}}, begin: time.Now()}
	for _, organization := range organizations {
		after := app.Ended{}
		if r.After != nil && r.After.Organization == organization {
			after = app.Ended{ID: r.After.ID, At: r.After.At}
		}
		if err := k.pruneOrganization(ctx, p, organization, after); err != nil {
			return nil, err
		}
		if p.out.Next != nil {
			break
		}
	}
	return &p.out, nil
}

// prunePage is a page being filled.
type prunePage struct {
	plan  prunePlan
	begin time.Time
	out   Pruned
}

func (p *prunePage) full() bool {
	return len(p.out.Jobs) >= prunePageJobs || time.Since(p.begin) > prunePageTime
}

func (k *Keeper) pruneOrganization(ctx context.Context, p *prunePage, organization string, after app.Ended) error {
	statuses := []app.Status{app.Completed, app.Failed}
	if p.plan.request.Failed {
		statuses = statuses[1:]
	}
	jobs := pass{Keeper: k, organization: organization}
	for {
		some, err := jobs.page(ctx, statuses, after)
		if err != nil || len(some) == 0 {
			return err
		}
		for _, e := range some {
			if !e.At.Before(p.plan.request.EndedBefore) {
				return nil
			}
			gone, err := k.prune(ctx, e, &p.plan)
			if err != nil {
				return err
			}
			if gone != nil {
				p.out.Jobs = append(p.out.Jobs, *gone)
			}
			if after = e; p.full() {
				p.out.Next = &PrunePosition{Organization: organization, At: e.At, ID: e.ID}
				return nil
			}
		}
	}
}

// pruneOrganizations returns the organizations still to be pruned.
func (k *Keeper) pruneOrganizations(ctx context.Context, r PruneRequest) (names []string, err error) {
	err = k.store.View(ctx, func(tx app.Tx) (err error) {
		names, err = tx.Organizations()
		return err
	})
	return slices.DeleteFunc(names, func(name string) bool {
		return r.Organization != "" && name != r.Organization || r.After != nil && name < r.After.Organization
	}), err
}

// prune deletes a job if it fits, or reports what would be deleted.
func (k *Keeper) prune(ctx context.Context, e app.Ended, plan *prunePlan) (*app.Expired, error) {
	if plan.request.DryRun {
		return k.jobs.WouldExpire(ctx, e.ID, plan.fits, plan.uploads)
	}
	return k.jobs.Expire(ctx, e.ID, plan.fits)
}

// prunePlan computes the result of a dry run. An upload is deleted with the last job that
// reads it, if all of those jobs are deleted.
type prunePlan struct {
	request  PruneRequest
	verdicts map[app.UploadID]verdict
}

// verdict is the job with which an upload is deleted, "" if it is kept.
type verdict struct{ with app.JobID }

func (p *prunePlan) fits(j *app.Job) bool {
	r := p.request
	size := int64(0)
	if j.ResultBytes != nil {
		size = *j.ResultBytes
	}
	return j.Status.Finished() && !j.Pinned && j.CompletedAt.Before(r.EndedBefore) &&
		(!r.Failed || j.Status == app.Failed) &&
		(r.User == "" || j.Email == r.User) &&
		(r.Algorithm == "" || j.Type == r.Algorithm) &&
		size >= r.LargerThan
}

func (p *prunePlan) uploads(tx app.Tx, rows []*app.Job) ([]*app.Upload, error) {
	var gone []*app.Upload
	for _, id := range app.UploadsOf(rows) {
		v, known := p.verdicts[id]
		if !known {
			var err error
			if v, err = p.judge(tx, id); err != nil {
				return nil, err
			}
			p.verdicts[id] = v
		}
		if v.with != rows[0].ID {
			continue
		}
		u, err := tx.Upload(id)
		if err != nil {
			return nil, err
		}
		gone = append(gone, u)
	}
	return gone, nil
}

// judge checks all jobs that read an upload.
func (p *prunePlan) judge(tx app.Tx, id app.UploadID) (v verdict, err error) {
	if _, err := tx.Upload(id); err != nil {
		if fault.CodeOf(err) == fault.NotFound {
			err = nil
		}
		return verdict{}, err
	}
	last := app.Ended{}
	seen := map[app.JobID]bool{} // batches already considered
	for reader, err := range tx.Readers(string(id)) {
		if err != nil {
			return v, err
		}
		j, err := tx.Job(reader)
		if err == nil && j.Private.Batch != "" {
			if seen[j.Private.Batch] {
				continue
			}
			seen[j.Private.Batch] = true
			j, err = tx.Job(j.Private.Batch)
		}
		if err != nil {
			return v, err
		}
		if !p.fits(j) {
			return verdict{}, nil
		}
		if e := (app.Ended{ID: j.ID, At: j.CompletedAt.Time}); e.Compare(last) > 0 {
			last = e
		}
	}
	return verdict{last.ID}, nil
}
