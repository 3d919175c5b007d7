// Package routing decides where jobs run: on which executor, with which placement on a
// cluster, and whether they can run there.
package routing

import (
	"fmt"
	"slices"

	"molrun/app/algorithm"
	"molrun/app/algorithm/placement"
	"molrun/app/base/fault"
)

// Table holds what the configuration and the machine define about where jobs run.
type Table struct {
	Executor  string                       // for algorithms that name none
	Machines  map[string]placement.Machine // by executor; only existing ones
	Rules     []Rule                       // the first rule that matches a job applies
	Placement placement.Placement          // default if neither rule nor algorithm sets one
	Allowed   []string                     // names of the cluster options that rules and algorithms can use

	// Largest returns the maximum of each resource that any node of a placement offers,
	// and the longest run time there. It returns false if these are unknown. A zero value
	// is unknown.
	Largest func(placement.Placement) (placement.Node, bool)
	// Missing returns what a placement requires but the cluster is known to lack, such as
	// "no partition gpu", or "" if it lacks nothing. A nil Missing means that this is
	// unknown.
	Missing func(placement.Placement) string
}

// Limit is the cluster's own limit on the run time of a job. It is zero if the cluster
// does not shorten the run time.
type Limit struct {
	Seconds int64
	Source  string // what sets the limit: "the partition main" or "the cluster"
}

// Rule sends matching jobs to an executor and a placement. An empty criterion matches
// every job; an empty target changes nothing.
type Rule struct {
	Algorithm, Organization, User string              // type; name; e-mail address
	Min                           placement.Resources // matches only jobs that need at least this much of each resource

	Executor  string
	Placement placement.Placement
}

// Message describes the error of a job that requests a longer run time.
func (l Limit) Message() string {
	return fmt.Sprintf("%s limits jobs to %d seconds; set maxRuntimeSeconds to at most that, or omit it", l.Source, l.Seconds)
}

// User is the submitter of a job.
type User struct{ Organization, Email string }

// matches reports whether the rule applies to a user's jobs of this type, regardless of
// size. An algorithm that names its executor always runs there, so a rule for another
// executor does not match.
func (r *Rule) matches(executor, typ string, by User) bool {
	return (r.Algorithm == "" || r.Algorithm == typ) &&
		(r.Organization == "" || r.Organization == by.Organization) &&
		(r.User == "" || r.User == by.Email) &&
		(executor == placement.Any || r.Executor == "" || r.Executor == executor)
}

func (r *Rule) matchesSize(needs placement.Resources) bool {
	return needs.CPUs >= r.Min.CPUs && needs.MemoryBytes >= r.Min.MemoryBytes && needs.GPUs >= r.Min.GPUs
}

// Router applies a Table. It is safe for concurrent use.
type Router struct {
	table Table
	ready readyCache
}

// New returns a router for a table, which must not change afterwards.
func New(t Table) *Router { return &Router{table: t} }

// rule returns the first rule that matches a job, or an empty rule.
func (r *Router) rule(executor, typ string, by User, needs placement.Resources) Rule {
	for _, rule := range r.table.Rules {
		if rule.matches(executor, typ, by) && rule.matchesSize(needs) {
			return rule
		}
	}
	return Rule{}
}

// Executor returns the executor for a user's job of this size.
func (r *Router) Executor(a *algorithm.File, by User, needs placement.Resources) string {
	if a.Executor != placement.Any {
		return a.Executor
	}
	if rule := r.rule(placement.Any, a.Type, by, needs); rule.Executor != "" {
		return rule.Executor
	}
	return r.table.Executor
}

// Executors returns the executors that can be chosen for a user's jobs, depending on
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
		if rule.Min == (placement.Resources{}) { // matches jobs of any size
			return all
		}
	}
	add("")
	return all
}

// Placement returns the placement of a job on its executor.
func (r *Router) Placement(a *algorithm.File, executor string, by User, needs placement.Resources) placement.Placement {
	if executor == placement.Local {
		return placement.Placement{}
	}
	rule := r.rule(executor, a.Type, by, needs)
	return rule.Placement.Over(a.Placement.Over(r.table.Placement))
}

// ChooseExecutor chooses the executor of a user's job, and returns an error for each need
// that it can never meet. seconds is the maximum run time of the job.
func (r *Router) ChooseExecutor(a *algorithm.File, by User, needs placement.Resources, seconds int64) (executor string, limit Limit, faults []fault.Field) {
	executor = r.Executor(a, by, needs)
	limit, faults = r.checkFit(a, executor, by, needs, seconds)
	return executor, limit, faults
}

// MemoryFor returns how much memory the executor can provide for a user's job: as much as
// the job needs, less if no machine has that much, and 0 if the job cannot run even with
// less.
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

// checkFit returns an error for each need that the executor can never meet, since such a
// job would wait forever.
func (r *Router) checkFit(a *algorithm.File, executor string, by User, needs placement.Resources, seconds int64) (limit Limit, faults []fault.Field) {
	if machine := r.table.Machines[executor]; machine.Local {
		has := placement.Node{CPUs: machine.CPUs, MemoryBytes: machine.MemoryBytes, GPUs: machine.GPUCount()}
		return limit, a.ExceededNeeds(needs, has, "this server has")
	}
	p := r.Placement(a, executor, by, needs)
	if r.table.Missing != nil {
		if what := r.table.Missing(p); what != "" {
			msg := fmt.Sprintf("the job's placement is no longer available: the cluster has %s; ask an administrator", what)
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
		limit = Limit{Seconds: node.Seconds, Source: where}
	}
	return limit, a.ExceededNeeds(needs, node, fmt.Sprintf("any node of %s has", where))
}
