package routing

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
)

// Has reports whether an executor with this name is configured.
func (r *Router) Has(executor string) bool {
	_, ok := r.table.Machines[executor]
	return ok
}

// Unready returns, by executor, why an algorithm cannot run on some of the executors that
// can be chosen for a user's jobs. nowhere is the first of these reasons if it cannot run
// on any of them.
func (r *Router) Unready(a *algorithm.File, by User) (why map[string]string, nowhere string) {
	executors := r.Executors(a, by)
	for _, executor := range executors {
		if msg := r.unready(a, executor); msg != "" {
			if why == nil {
				why = map[string]string{}
			}
			why[executor] = msg
		}
	}
	if len(why) == len(executors) {
		nowhere = why[executors[0]]
	}
	return why, nowhere
}

func (r *Router) unready(a *algorithm.File, executor string) string {
	if !r.Has(executor) {
		return fmt.Sprintf("%s runs on the executor %q, which is not configured here", a.Type, executor)
	}
	if r.ready.fresh(candidate{a, executor}) {
		return ""
	}
	if missing := r.missing(a, executor); len(missing) > 0 {
		return fmt.Sprintf("%s is not ready on this server: %s", a.Type, strings.Join(missing, "; "))
	}
	r.ready.add(candidate{a, executor})
	return ""
}

// MissingFor returns what is missing to run a user's jobs. The list is empty if at least
// one of their executors can run them.
func (r *Router) MissingFor(a *algorithm.File, by User) []string {
	var first []string
	for _, executor := range r.Executors(a, by) {
		missing := []string{fmt.Sprintf("the executor %q is not configured", executor)}
		if r.Has(executor) {
			missing = r.missing(a, executor)
		}
		if len(missing) == 0 {
			return missing
		}
		if first == nil {
			first = missing
		}
	}
	return first
}

// missing returns what an executor lacks to run the algorithm.
func (r *Router) missing(a *algorithm.File, executor string) []string {
	missing := a.Missing(r.table.Machines[executor])
	if executor == placement.Local {
		return missing
	}
	if option := r.Forbidden(a); option != "" {
		missing = append(missing, fmt.Sprintf("its [slurm] options include %s, which slurm.allow_options does not allow", option))
	}
	return missing
}

// Forbidden returns the first cluster option of an algorithm that the configuration does
// not allow, or "" if all are allowed.
func (r *Router) Forbidden(a *algorithm.File) string { return a.Placement.NotAllowed(r.table.Allowed) }

// readyFor is the TTL of a successful readiness check. Looking up programs costs a few
// system calls, too many to repeat for thousands of submissions per second. A failed
// check is repeated every time. If a program disappears within the TTL, the job fails
// with an explanation.
const readyFor = time.Second

// readyCache records when an algorithm was last found ready.
type readyCache struct {
	mu    sync.Mutex
	found map[candidate]time.Time // bounded by the size of the catalogue
}

// candidate is an algorithm on one executor.
type candidate struct {
	algorithm *algorithm.File
	executor  string
}

func (c *readyCache) fresh(k candidate) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.found[k]
	return known && time.Since(at) < readyFor
}

func (c *readyCache) add(k candidate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found == nil {
		c.found = map[candidate]time.Time{}
	}
	c.found[k] = time.Now()
}
