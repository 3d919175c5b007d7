package storage

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"molrun/app"
)

// everyFilter returns all combinations of the filters of a listing.
func everyFilter(organization string) (all []app.JobFilter) {
	for _, email := range append(someEmails, "") {
		for _, typ := range append(someTypes, "") {
			for _, status := range append(app.Statuses[:], "") {
				f := app.JobFilter{Organization: organization, Email: email, Type: typ}
				if status != "" {
					f.Statuses = []app.Status{status}
				}
				all = append(all, f)
			}
		}
	}
	return all
}

func ids(jobs []*app.Job) map[app.JobID]bool {
	set := map[app.JobID]bool{}
	for _, j := range jobs {
		set[j.ID] = true
	}
	return set
}

// TestPagingIsExactWhileJobsComeChangeAndGo reads listings for every combination of
// filters page by page, with random changes between pages. It checks that no job is
// listed twice, that none that matched throughout is missing, and that none is listed
// that never matched.
func TestPagingIsExactWhileJobsComeChangeAndGo(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	s := openAt(t, newPath(t), Options{})
	sim := &simulation{r: r, last: 100, model: newModel()}
	steps := func(n int) {
		update(t, s, func(tx app.Tx) error {
			for range n {
				if err := sim.step(tx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	steps(300)
	organization := pick(r, someOrganizations)
	filters := everyFilter(organization)
	for range 100 {
		f := app.JobFilter{Organization: organization, Statuses: pick(r, [][]app.Status{nil, {app.Queued, app.Failed}})}
		labelFilter(r, &f)
		filters = append(filters, f)
	}
	for _, f := range filters {
		p := &paging{t: t, store: s, sim: sim, filter: f, seen: map[app.JobID]bool{}}
		p.throughout, p.ever = ids(sim.listed(f)), ids(sim.listed(f))
		for p.page(1 + r.IntN(6)) {
			steps(1 + r.IntN(4))
			if sim.jobs[p.last] != nil && r.IntN(3) == 0 { // the job at which the next page starts
				update(t, s, func(tx app.Tx) error { return sim.drop(tx, p.last) })
			}
			p.changed()
		}
		p.judge()
		if t.Failed() {
			t.FailNow()
		}
	}
	checkStore(t, s)
}

// paging reads one listing while its jobs change.
type paging struct {
	t                      *testing.T
	store                  *Store
	sim                    *simulation
	filter                 app.JobFilter
	next                   app.Position
	last                   app.JobID
	seen, throughout, ever map[app.JobID]bool
}

func (p *paging) String() string { return fmt.Sprintf("%+v", p.filter) }

// page reads the next page and reports whether there is another.
func (p *paging) page(limit int) (more bool) {
	view(p.t, p.store, func(tx app.Tx) error {
		page, err := tx.Jobs(p.filter, p.next, limit)
		for _, j := range page.Jobs {
			switch {
			case p.seen[j.ID]:
				p.t.Errorf("%v: %s is seen twice", p, j.ID)
			case p.last != "" && j.ID > p.last != p.filter.Ascending:
				p.t.Errorf("%v: %s comes after %s", p, j.ID, p.last)
			}
			p.seen[j.ID], p.last = true, j.ID
		}
		p.next, more = page.Next, page.Next != ""
		return err
	})
	return more
}

// changed records which jobs match now.
func (p *paging) changed() {
	now := ids(p.sim.listed(p.filter))
	for id := range p.throughout {
		if !now[id] {
			delete(p.throughout, id)
		}
	}
	for id := range now {
		p.ever[id] = true
	}
}

func (p *paging) judge() {
	for id := range p.throughout {
		if !p.seen[id] {
			p.t.Errorf("%v: %s matched all the time but is not seen", p, id)
		}
	}
	for id := range p.seen {
		if !p.ever[id] {
			p.t.Errorf("%v: %s is seen but never matched", p, id)
		}
	}
}
