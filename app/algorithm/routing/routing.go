// Package routing decides where jobs run: on which executor, where on a cluster,
// and whether they can run there at all.
package routing

import (
	"fmt"
	"slices"

	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
)

// Table holds what the configuration and the machine say about where jobs run.
type Table struct {
	Executor  string                       // for algorithms that name none
	Machines  map[string]placement.Machine // by executor: those that exist
	Rules     []Rule                       // the first that matches a job decides
	Placement placement.Placement          // where neither rule nor algorithm says otherwise
	Allowed   []string                     // names of the cluster options that rules and algorithms may use

	// Largest returns the maximum of each quantity that any node of a placement
	// offers, and the longest run time there; false if that is unknown. A zero
	// quantity is unknown.
	Largest func(placement.Placement) (placement.Node, bool)
	// Missing returns what a placement names and the cluster is known not to have,
	// such as "no partition gpu"; "" if nothing. Nil: unknown.
	Missing func(placement.Placement) string
}

// Limit is the cluster's own limit on the run time of a job; zero if it does not
// shorten that.
type Limit struct {
	Seconds int64
	Of      string // whose limit it is: "the partition main" or "the cluster"
}

// Rule sends the jobs that match it to an executor and a placement. An empty
// criterion matches every job; an empty target changes nothing.
type Rule struct {
	Algorithm, Organization, User string              // type; name; e-mail
	Least                         placement.Resources // minimum of each that a job needs

	Executor  string
	Placement placement.Placement
}

// Fault says what is wrong with a job that asks for more.
func (l Limit) Fault() string {
	return fmt.Sprintf("%s lets jobs run %d seconds; give a maxRuntimeSeconds of at most that, or leave it out", l.Of, l.Seconds)
}

// User is the submitter of a job.
type User struct{ Organization, Email string }

// matches reports whether the rule is for a user's jobs of this type, whatever
// their size. An algorithm that names its executor stays there: a rule for
// another executor does not match.
func (r *Rule) matches(executor, typ string, by User) bool {
	return (r.Algorithm == "" || r.Algorithm == typ) &&
		(r.Organization == "" || r.Organization == by.Organization) &&
		(r.User == "" || r.User == by.Email) &&
		(executor == placement.Any || r.Executor == "" || r.Executor == executor)
}

func (r *Rule) matchesSize(needs placement.Resources) bool {
	return needs.CPUs >= r.Least.CPUs && needs.MemoryBytes >= r.Least.MemoryBytes && needs.GPUs >= r.Least.GPUs
}

// Router applies a Table. It is safe for concurrent use.
type Router struct {
	table Table
	ready readyCache
}

// New returns a router for a table, which must not change any more.
func New(t Table) *Router { return &Router{table: t} }

// rule returns the first rule that matches a job, an empty one where none does.
func (r *Router) rule(executor, typ string, by User, needs placement.Resources) Rule {
	for _, rule := range r.table.Rules {
		if rule.matches(executor, typ, by) && rule.matchesSize(needs) {
			return rule
		}
	}
	return Rule{}
}

// Executor returns the executor of a user's job of that size.
func (r *Router) Executor(a *algorithm.File, by User, needs placement.Resources) string {
	if a.Executor != placement.Any {
		return a.Executor
	}
	if rule := r.rule(placement.Any, a.Type, by, needs); rule.Executor != "" {
		return rule.Executor
	}
	return r.table.Executor
}

// Executors returns the executors that a user's jobs may get, depending on their
// size.
func (r *Router) Executors(a *algorithm.File, by User) []string {
	if a.Executor != placement.Any {
		return []string{a.Executor}
	}
	var all []string
	add := func(name string) {
		if name == "" {
			name = r.table.Executor
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	for _, rule := range r.table.Rules {
		if !rule.matches(placement.Any, a.Type, by) {
			continue
		}
		add(rule.Executor)
		if rule.Least == (placement.Resources{}) { // it matches jobs of any size
			return all
		}
	}
	add("")
	return all
}

// Placement returns where on its executor a job goes.
func (r *Router) Placement(a *algorithm.File, executor string, by User, needs placement.Resources) placement.Placement {
	if executor == placement.Local {
		return placement.Placement{}
	}
	rule := r.rule(executor, a.Type, by, needs)
	return rule.Placement.Over(a.Placement.Over(r.table.Placement))
}

// ChooseExecutor chooses the executor of a user's job, and returns a fault for each need that
// it can never meet. seconds is the longest run time of the job.
func (r *Router) ChooseExecutor(a *algorithm.File, by User, needs placement.Resources, seconds int64) (executor string, limit Limit, faults []fault.Field) {
	executor = r.Executor(a, by, needs)
	limit, faults = r.checkFit(a, executor, by, needs, seconds)
	return executor, limit, faults
}

// MemoryFor returns how much of the memory that a user's job needs its executor can give it:
// less where no machine has as much, and 0 where the job can't run with that either.
func (r *Router) MemoryFor(a *algorithm.File, executor string, by User, needs placement.Resources, seconds int64) int64 {
	if r.fits(a, executor, by, needs, seconds) {
		return needs.MemoryBytes
	}
	most := r.table.Machines[executor].MemoryBytes
	if executor != placement.Local && r.table.Largest != nil {
		node, _ := r.table.Largest(r.Placement(a, executor, by, needs))
		most = node.MemoryBytes
	}
	if needs.MemoryBytes = min(needs.MemoryBytes, most); r.fits(a, executor, by, needs, seconds) {
		return needs.MemoryBytes
	}
	return 0
}

func (r *Router) fits(a *algorithm.File, executor string, by User, needs placement.Resources, seconds int64) bool {
	limit, faults := r.checkFit(a, executor, by, needs, seconds)
	return limit.Seconds == 0 && len(faults) == 0
}

// checkFit returns a fault for each need that the executor can never meet: such a job
// would wait forever.
func (r *Router) checkFit(a *algorithm.File, executor string, by User, needs placement.Resources, seconds int64) (limit Limit, faults []fault.Field) {
	if machine := r.table.Machines[executor]; machine.Local {
		has := placement.Node{CPUs: machine.CPUs, MemoryBytes: machine.MemoryBytes, GPUs: machine.GPUCount()}
		return limit, a.Beyond(needs, has, "this server has")
	}
	p := r.Placement(a, executor, by, needs)
	if r.table.Missing != nil {
		if what := r.table.Missing(p); what != "" {
			msg := fmt.Sprintf("the job would go to a place that is gone: the cluster has %s; ask an administrator", what)
			return limit, []fault.Field{{Type: "not_ready", Msg: msg}}
		}
	}
	if r.table.Largest == nil {
		return limit, nil
	}
	node, known := r.table.Largest(p)
	if !known {
		return limit, nil
	}
	where := "the cluster"
	if p.Partition != "" {
		where = "the partition " + p.Partition
	}
	if node.Seconds > 0 && seconds > node.Seconds {
		limit = Limit{Seconds: node.Seconds, Of: where}
	}
	return limit, a.Beyond(needs, node, fmt.Sprintf("any node of %s has", where))
}
