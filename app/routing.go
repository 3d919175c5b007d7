package app

import (
	"context"
	"slices"
)

// The executors that there are.
const (
	ExecutorLocal = "local"
	ExecutorSlurm = "slurm"
)

// executorAny is what an algorithm says that runs anywhere.
const executorAny = "any"

// Routing says on which executor jobs run and where on a cluster, as far as
// the configuration does.
type Routing struct {
	Rules     []Rule    // of those that fit a job, the first decides
	Placement Placement // where neither rule nor algorithm says else
	Allowed   []string  // names of the options that rules and algorithms may give

	// Largest tells what the largest nodes have that a placement leads to, each
	// quantity by itself, and how long a job may run there; false where that is
	// not known. What is zero is not known.
	Largest func(Placement) (Node, bool)
}

// Node is what a node of a cluster has for one job.
type Node struct {
	CPUs        int
	MemoryBytes int64
	GPUs        int
	Seconds     int64 // that a job may run
}

// Rule sends the jobs that fit it to an executor, and to a place there. What it
// leaves empty fits every job, or changes nothing.
type Rule struct {
	Algorithm, Organization, User string    // type; name; e-mail
	Least                         Resources // what a job needs at least of each

	Executor  string
	Placement Placement
}

// fitsWhose reports whether the rule is for such jobs, whatever their size. An
// algorithm that names its executor stays there, so rules that lead elsewhere
// are none of its.
func (r *Rule) fitsWhose(executor, typ string, by Caller) bool {
	return (r.Algorithm == "" || r.Algorithm == typ) &&
		(r.Organization == "" || r.Organization == by.Organization) &&
		(r.User == "" || r.User == by.Email) &&
		(executor == executorAny || r.Executor == "" || r.Executor == executor)
}

func (r *Rule) fitsSize(needs Resources) bool {
	return needs.CPUs >= r.Least.CPUs && needs.MemoryBytes >= r.Least.MemoryBytes && needs.GPUs >= r.Least.GPUs
}

// fitsEverySize reports whether no job is too small for the rule.
func (r *Rule) fitsEverySize() bool { return r.Least == Resources{} }

// rule gives the rule that decides for a job, an empty one where none fits.
func (r *Routing) rule(executor, typ string, by Caller, needs Resources) Rule {
	for _, rule := range r.Rules {
		if rule.fitsWhose(executor, typ, by) && rule.fitsSize(needs) {
			return rule
		}
	}
	return Rule{}
}

// wants is what an algorithm says of its executor.
func (a *Algorithm) wants() string {
	if a.Executor == "" {
		return executorAny
	}
	return a.Executor
}

// executorFor says where a caller's job of that size runs.
func (s *Service) executorFor(a *Algorithm, by Caller, needs Resources) string {
	if a.wants() != executorAny {
		return a.Executor
	}
	if rule := s.options.Routing.rule(executorAny, a.Type, by, needs); rule.Executor != "" {
		return rule.Executor
	}
	return s.options.Executor
}

// executorsFor lists where a caller's jobs may run, depending on their size.
func (s *Service) executorsFor(a *Algorithm, by Caller) []string {
	if a.wants() != executorAny {
		return []string{a.Executor}
	}
	var all []string
	add := func(name string) {
		if name == "" {
			name = s.options.Executor
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	for _, rule := range s.options.Routing.Rules {
		if !rule.fitsWhose(executorAny, a.Type, by) {
			continue
		}
		add(rule.Executor)
		if rule.fitsEverySize() {
			return all
		}
	}
	add("")
	return all
}

// placement says where on its executor a job goes.
func (s *Service) placement(a *Algorithm, executor string, by Caller, needs Resources) Placement {
	if executor == ExecutorLocal {
		return Placement{}
	}
	routing := &s.options.Routing
	rule := routing.rule(executor, a.Type, by, needs)
	return rule.Placement.Over(a.Placement.Over(routing.Placement))
}

// PlacementOf says where on its executor a job goes, by the rules of today: they
// may have changed since it was submitted.
func (s *Service) PlacementOf(ctx context.Context, j *Job) (Placement, error) {
	if j.Executor == ExecutorLocal {
		return Placement{}, nil
	}
	a, err := s.AlgorithmOf(ctx, j)
	if err != nil {
		return Placement{}, err
	}
	p := s.placement(a, j.Executor, Caller{Organization: j.Organization, Email: j.Email}, j.Private.Needs)
	if word := a.Placement.notAllowed(s.options.Routing.Allowed); word != "" {
		return p, Errorf(Invalid, "The job's algorithm asks for the cluster's option %s, which is no longer allowed. Ask an administrator to allow it, or submit the job anew.", word)
	}
	return p, nil
}
