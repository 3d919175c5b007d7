// Package placement describes the needs of jobs and where they run: resources, executors,
// and partitions and options of a cluster.
package placement

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Placement selects where on a cluster a task runs, in addition to its resources. The
// cluster chooses the values of empty fields.
type Placement struct {
	Partition  string
	Account    string
	QOS        string
	Constraint string
	Options    []string // additional sbatch options, such as --exclusive or --nice=100
}

// Over returns p with its empty fields filled in from base. An option replaces the option
// of the same name in base.
func (p Placement) Over(base Placement) Placement {
	for _, field := range []struct{ own, base *string }{
		{&p.Partition, &base.Partition},
		{&p.Account, &base.Account},
		{&p.QOS, &base.QOS},
		{&p.Constraint, &base.Constraint},
	} {
		if *field.own == "" {
			*field.own = *field.base
		}
	}
	var options []string
	for _, word := range base.Options {
		if !slices.ContainsFunc(p.Options, func(own string) bool { return optionName(own) == optionName(word) }) {
			options = append(options, word)
		}
	}
	p.Options = append(options, p.Options...)
	return p
}

// Empty reports whether the placement leaves everything to the cluster.
func (p Placement) Empty() bool {
	return p.Partition == "" && p.Account == "" && p.QOS == "" && p.Constraint == "" && len(p.Options) == 0
}

var (
	placeName       = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.,+@-]{0,254}$`)
	placeConstraint = regexp.MustCompile(`^[A-Za-z0-9_(\[!][A-Za-z0-9_.,+&|()\[\]*:=!-]{0,254}$`)
	optionWord      = regexp.MustCompile(`^--[a-z][a-z0-9-]*(=[!-~]{1,255})?$`)
)

// Check returns the name of the first invalid field and an error message, or "" for both
// if all fields are valid.
func (p Placement) Check() (field, msg string) {
	for _, f := range []struct {
		name, value string
		pattern     *regexp.Regexp
	}{
		{"partition", p.Partition, placeName},
		{"account", p.Account, placeName},
		{"qos", p.QOS, placeName},
		{"constraint", p.Constraint, placeConstraint},
	} {
		if f.value != "" && !f.pattern.MatchString(f.value) {
			return f.name, fmt.Sprintf("%q is not a valid name", f.value)
		}
	}
	for _, word := range p.Options {
		if msg := CheckOption(word); msg != "" {
			return "options", msg
		}
	}
	return "", ""
}

// ownOptions lists the sbatch options that molrun sets itself, or that would change the
// information it gets about a job.
var ownOptions = []string{
	"account", "array", "batch", "begin", "bb", "bbf", "chdir", "cluster", "cluster-constraint", "clusters", "comment",
	"constraint", "cpus-per-gpu", "cpus-per-task", "deadline", "dependency", "error", "export", "export-file", "get-user-env",
	"gid", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "help", "hold", "ignore-pbs", "input",
	"job-name", "kill-on-invalid-dep", "mem", "mem-per-cpu", "mem-per-gpu", "nodefile", "nodes", "no-kill", "no-requeue",
	"ntasks", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node", "ntasks-per-socket", "open-mode", "output", "parsable",
	"partition", "propagate", "qos", "quiet", "requeue", "signal", "test-only", "time", "time-min", "uid", "usage", "verbose",
	"version", "wait", "wrap",
}

// CheckOption explains why an option must not be passed to sbatch, or returns "" if it is
// allowed. sbatch accepts abbreviated option names, so prefixes are rejected, too.
func CheckOption(word string) string {
	if !optionWord.MatchString(word) {
		return fmt.Sprintf("%q is not an option; write --name or --name=value, without spaces", word)
	}
	name := optionName(word)
	for _, own := range ownOptions {
		if strings.HasPrefix(own, name) {
			return fmt.Sprintf("--%s can't be set here, because molrun sets it (--%s)", name, own)
		}
	}
	return ""
}

// optionName returns the name of an option: nice for --nice=100.
func optionName(word string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
	return name
}

// NotAllowed returns the first option whose name is not allowed, or "" if all are
// allowed.
func (p Placement) NotAllowed(allowed []string) string {
	for _, word := range p.Options {
		if !slices.Contains(allowed, optionName(word)) {
			return "--" + optionName(word)
		}
	}
	return ""
}
