package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"molrun/app/algorithm/placement"
	"molrun/app/algorithm/routing"
	"molrun/app/base/fault"
	"molrun/app/base/unit"
)

// Slurm configures how jobs run on a Slurm cluster. An empty SharedDir disables it.
type Slurm struct {
	SharedDir string `toml:"shared_dir"` // on a file system mounted at the same path on all nodes
	Path      string `toml:"path"`       // directories of sbatch and the other commands; "" means the service's PATH
	Conf      string `toml:"conf"`       // path of slurm.conf; "" means the commands' default
	NodePath  string `toml:"node_path"`  // PATH of programs on the nodes; "" means the system's directories
	Prefix    string `toml:"prefix"`     // prefix of the names of the service's jobs on the cluster

	Partition  string     `toml:"partition"` // default placement, with the next four
	Account    string     `toml:"account"`
	QOS        string     `toml:"qos"`
	Constraint string     `toml:"constraint"`
	Options    OptionList `toml:"options"`

	AllowOptions OptionList    `toml:"allow_options"` // names that rules and algorithms can use
	MaxJobs      int           `toml:"max_jobs"`      // maximum number on the cluster at once, counting array tasks
	HoldGrace    unit.Duration `toml:"hold_grace"`    // how long a job can be held for a permanent reason
	Poll         unit.Duration `toml:"poll"`          // interval of querying job states
	LostAfter    unit.Duration `toml:"lost_after"`    // time after which a job unknown to the cluster is lost
}

// Rule determines where the matching jobs run.
type Rule struct {
	Algorithm    string     `toml:"algorithm"` // this and the next five select jobs
	Organization string     `toml:"organization"`
	User         string     `toml:"user"`
	MinCPUs      int        `toml:"min_cpus"`
	MinMemory    unit.Bytes `toml:"min_memory"`
	MinGPUs      int        `toml:"min_gpus"`

	Executor   string     `toml:"executor"`
	Partition  string     `toml:"partition"`
	Account    string     `toml:"account"`
	QOS        string     `toml:"qos"`
	Constraint string     `toml:"constraint"`
	Options    OptionList `toml:"options"`
}

// On reports whether jobs can run on a cluster.
func (s Slurm) On() bool { return s.SharedDir != "" }

// Placement returns the default placement.
func (s Slurm) Placement() placement.Placement {
	return placement.Placement{Partition: s.Partition, Account: s.Account, QOS: s.QOS, Constraint: s.Constraint, Options: s.Options}
}

func (r Rule) placement() placement.Placement {
	return placement.Placement{Partition: r.Partition, Account: r.Account, QOS: r.QOS, Constraint: r.Constraint, Options: r.Options}
}

// Routing returns the configured routing table.
func (c *Config) Routing() routing.Table {
	table := routing.Table{Executor: c.Runner.Executor, Placement: c.Slurm.Placement(), Allowed: c.Slurm.AllowOptions}
	for _, r := range c.Runner.Rules {
		table.Rules = append(table.Rules, routing.Rule{
			Algorithm: r.Algorithm, Organization: r.Organization, User: r.User,
			Min:      placement.Resources{CPUs: r.MinCPUs, MemoryBytes: int64(r.MinMemory), GPUs: r.MinGPUs},
			Executor: r.Executor, Placement: r.placement(),
		})
	}
	return table
}

// setSlurmDefaults sets the defaults of the settings in this file. The allowed options
// select nodes and how jobs share them; none gives access to a file, another user or a
// mailbox.
func (c *Config) setSlurmDefaults() {
	c.Slurm.Prefix = "molrun"
	c.Slurm.AllowOptions = OptionList{
		"exclude", "exclusive", "gres-flags", "hint", "licenses", "nice", "nodelist", "reservation", "switches",
		"threads-per-core", "tmp", "wckey",
	}
	c.Slurm.MaxJobs = 5000
	c.Slurm.HoldGrace = unit.Duration(10 * time.Minute)
	c.Slurm.Poll = unit.Duration(5 * time.Second)
	c.Slurm.LostAfter = unit.Duration(2 * time.Minute)
}

var slurmPrefix = regexp.MustCompile(`^[a-z0-9][a-z0-9_]{0,31}$`)

// checkSlurm checks the cluster's settings and the rules.
func (c *Config) checkSlurm() error {
	s := c.Slurm
	absolute := func(path string) bool { return path == "" || filepath.IsAbs(path) }
	folders := func(path string) bool { return !slices.ContainsFunc(filepath.SplitList(path), relative) }
	msg := cmp.Or(
		complaint(c.Runner.Executor != placement.Local && c.Runner.Executor != placement.Slurm, "runner.executor: use local or slurm"),
		complaint(c.Runner.Executor == placement.Slurm && !s.On(), "runner.executor: to use slurm, set slurm.shared_dir"),
		complaint(!absolute(s.SharedDir), "slurm.shared_dir: must be an absolute path, the same on this machine and on all nodes"),
		complaint(strings.ContainsFunc(s.SharedDir, notInScripts), `slurm.shared_dir: use a path without spaces, quotes, "%" and "\"`),
		complaint(s.On() && c.shares(), "slurm.shared_dir: name a folder outside the data directory, which nodes must not access"),
		complaint(!folders(s.Path), "slurm.path: must be absolute paths of folders, separated by \":\", such as /opt/slurm/bin"),
		complaint(!absolute(s.Conf), "slurm.conf: must be the absolute path of slurm.conf"),
		complaint(!folders(s.NodePath), "slurm.node_path: must be absolute paths of folders, separated by \":\", such as /usr/bin:/opt/tools"),
		complaint(!slurmPrefix.MatchString(s.Prefix), `slurm.prefix: use up to 32 lower-case letters, digits and "_"`),
		complaint(s.MaxJobs < 1 || s.MaxJobs > 1_000_000, "slurm.max_jobs: must be 1 to 1000000"),
		complaint(s.HoldGrace < unit.Duration(time.Second), "slurm.hold_grace: must be at least 1s, such as 10m"),
		complaint(s.Poll < unit.Duration(100*time.Millisecond) || s.Poll > unit.Duration(time.Minute), "slurm.poll: must be 100ms to 1m"),
		complaint(s.LostAfter < unit.Duration(time.Second) || s.LostAfter > unit.Duration(time.Hour), "slurm.lost_after: must be 1s to 1h, such as 2m"),
		allowFault(s.AllowOptions),
		placementFault("slurm.", s.Placement()),
	)
	if msg != "" {
		return fault.Errorf(fault.Invalid, "%s", msg)
	}
	for i, r := range c.Runner.Rules {
		if msg := c.ruleFault(r); msg != "" {
			return fault.Errorf(fault.Invalid, "runner.rules, rule %d: %s", i+1, msg)
		}
	}
	return nil
}

func relative(path string) bool { return !filepath.IsAbs(path) }

// notInScripts reports whether a character is not allowed in a path in a Slurm option.
func notInScripts(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`%\"'`, r) }

// shares reports whether the shared directory is in the data directory, or vice versa.
func (c *Config) shares() bool {
	data, err := filepath.Abs(c.Data)
	return err == nil && (Inside(c.Slurm.SharedDir, data) || Inside(data, c.Slurm.SharedDir))
}

// Inside reports whether path is dir or inside it, judging only by name.
func Inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func (c *Config) ruleFault(r Rule) string {
	executor := cmp.Or(r.Executor, c.Runner.Executor)
	return cmp.Or(
		complaint(!slices.Contains([]string{"", placement.Local, placement.Slurm}, r.Executor), "executor: use local or slurm"),
		complaint(r.Executor == placement.Slurm && !c.Slurm.On(), "executor: to use slurm, set slurm.shared_dir"),
		complaint(min(r.MinCPUs, r.MinGPUs) < 0, "min_cpus and min_gpus: must be 0 or more"),
		complaint(r.Executor == "" && r.placement().Empty(), "set executor, partition, account, qos, constraint or options for these jobs"),
		complaint(r.Executor == placement.Local && !r.placement().Empty(), "partition, account, qos, constraint and options are only for the executor slurm"),
		complaint(executor == placement.Local && r.Executor == "" && !c.Slurm.On(), "partition, account, qos, constraint and options take effect on a cluster: set slurm.shared_dir"),
		placementFault("", r.placement()),
		notAllowedFault(r.placement(), c.Slurm.AllowOptions),
	)
}

// placementFault returns the error in a configured placement, or "".
func placementFault(prefix string, p placement.Placement) string {
	field, msg := p.Check()
	return complaint(field != "", prefix+field+": "+msg)
}

func notAllowedFault(p placement.Placement, allowed []string) string {
	word := p.NotAllowed(allowed)
	return complaint(word != "", fmt.Sprintf("options: %s is not in slurm.allow_options; add it there to allow it for jobs", word))
}

func allowFault(names []string) string {
	for _, name := range names {
		if msg := placement.CheckOption("--" + name); msg != "" || strings.Contains(name, "=") {
			return fmt.Sprintf("slurm.allow_options: %s", cmp.Or(msg, fmt.Sprintf("give only the name of %q", name)))
		}
	}
	return ""
}

// OptionList is a list of words, or one string of words separated by spaces.
type OptionList []string

// UnmarshalText parses words such as "--exclusive --nice=100".
func (o *OptionList) UnmarshalText(text []byte) error {
	*o = append(OptionList(nil), strings.Fields(string(text))...)
	return nil
}
