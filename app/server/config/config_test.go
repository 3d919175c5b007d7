package config_test

import (
	"testing"
	"time"

	"molrun/app/test/must"
)

func TestEnvironmentOverridesFile(t *testing.T) {
	const text = "listen = \":1\"\n[runner]\ncpus = 3\nkeep_failed = \"2d\"\nmemory = \"1.5GiB\"\ngpus = \"0,1\"\n"
	c, err := loadText(t, text, "MOLRUN_RUNNER_CPUS=5", "MOLRUN_RUNNER_GRACE=3s", "HOME=/x", "MOLRUN_CONFIG=/a")
	must.OK(t, err)
	if c.Listen != ":1" || c.Runner.CPUs != 5 || time.Duration(c.Runner.KeepFailed) != 48*time.Hour ||
		c.Runner.Memory != 3<<29 || len(c.Runner.GPUs) != 2 || time.Duration(c.Runner.Grace) != 3*time.Second {
		t.Errorf("got\n%s", c.Text())
	}
	must.Equal(t, "default of data", c.Data, "molrun-data")
}

func TestInvalidSettingsAreErrors(t *testing.T) {
	tests := []struct{ name, text, variable, want string }{
		{"unknown", "lisen = 1\n", "", `config.toml:1: unknown setting "lisen"; did you mean "listen"?`},
		{"unknown in a section", "[runner]\n\ncpu = 1\n", "", `config.toml:3: unknown setting "runner.cpu"; did you mean "runner.cpus"?`},
		{"wrong type", "[runner]\ncpus = \"many\"\n", "", "config.toml:2"},
		{"no time", "[runner]\ngrace = \"soon\"\n", "", "config.toml:2"},
		{"not TOML", "listen = \n", "", "config.toml:1"},
		{"unknown variable", "", "MOLRUN_LISEN=1", `did you mean "MOLRUN_LISTEN"?`},
		{"faulty variable", "", "MOLRUN_RUNNER_CPUS=many", "MOLRUN_RUNNER_CPUS"},
		{"unknown sandbox", "[runner]\nsandbox = \"yes\"\n", "", "runner.sandbox"},
		{"relative cgroup", "[runner]\ncgroup = \"molrun.slice\"\n", "", "runner.cgroup"},
		{"too few processes", "[runner]\nprocesses = 3\n", "", "runner.processes"},
		{"files too small", "[runner]\nfile_size = \"1kB\"\n", "", "runner.file_size"},
		{"bad level", "[log]\nlevel = \"loud\"\n", "", "log.level"},
		{"bad address", "public_url = \"lab.example\"\n", "", "public_url"},
		{"unknown executor", "[runner]\nexecutor = \"pbs\"\n", "", "runner.executor"},
		{"cluster that is not configured", "[runner]\nexecutor = \"slurm\"\n", "", "set slurm.shared_dir"},
		{"relative path of the site", "[site.paths]\nboltz = \"data\"\n", "", "site.paths.boltz: must be an absolute path"},
		{"bad name of a path of the site", "[site.paths]\n\"a b\" = \"/data\"\n", "", "site.paths: \"a b\" is not a valid name"},
		{"path of the site as a number", "[site.paths]\nboltz = 5\n", "", "config.toml:2"},
		{"relative shared folder", "[slurm]\nshared_dir = \"shared\"\n", "", "slurm.shared_dir: must be an absolute path"},
		{"shared folder with a space", "[slurm]\nshared_dir = \"/a b\"\n", "", "slurm.shared_dir: use a path without spaces"},
		{"shared folder in the data directory", "data = \"/srv/molrun\"\n[slurm]\nshared_dir = \"/srv/molrun/shared\"\n", "", "outside the data directory"},
		{"data directory in the shared folder", "data = \"/srv/molrun\"\n[slurm]\nshared_dir = \"/srv/\"\n", "", "outside the data directory"},
		{"relative folder of commands", "[slurm]\npath = \"/bin:bin\"\n", "", "slurm.path"},
		{"relative slurm.conf", "[slurm]\nconf = \"slurm.conf\"\n", "", "slurm.conf"},
		{"relative folder on nodes", "[slurm]\nnode_path = \"bin\"\n", "", "slurm.node_path"},
		{"prefix with a slash", "[slurm]\nprefix = \"a/b\"\n", "", "slurm.prefix"},
		{"no jobs at once", "[slurm]\nmax_jobs = 0\n", "", "slurm.max_jobs"},
		{"no grace", "[slurm]\nhold_grace = \"0s\"\n", "", "slurm.hold_grace"},
		{"lost at once", "[slurm]\nlost_after = \"0s\"\n", "", "slurm.lost_after"},
		{"polling without end", "[slurm]\npoll = \"1ms\"\n", "", "slurm.poll"},
		{"partition of two words", "[slurm]\npartition = \"a b\"\n", "", "slurm.partition"},
		{"constraint that ends the line", "[slurm]\nconstraint = \"a\\nb\"\n", "", "slurm.constraint"},
		{"option that molrun sets", "[slurm]\noptions = \"--wrap=date\"\n", "", "slurm.options: --wrap can't be set here"},
		{"allowed option that molrun sets", "[slurm]\nallow_options = \"nice uid\"\n", "", "slurm.allow_options: --uid"},
		{"rule for nothing", "[[runner.rules]]\nalgorithm = \"a\"\n", "", "runner.rules, rule 1: set executor"},
		{"rule without a cluster", "[[runner.rules]]\nexecutor = \"slurm\"\n", "", "runner.rules, rule 1: executor: to use slurm"},
		{"rule of a partition without a cluster", "[[runner.rules]]\npartition = \"a\"\n", "", "rule 1: partition, account"},
		{"rule of a partition here", "[slurm]\nshared_dir = \"/s\"\n[[runner.rules]]\nexecutor = \"local\"\npartition = \"a\"\n", "", "rule 1: partition, account"},
		{"rule with an option that is not allowed", "[slurm]\nshared_dir = \"/s\"\n[[runner.rules]]\noptions = \"--mail-user=a@b\"\n", "", "rule 1: options: --mail-user is not in slurm.allow_options"},
		{"rule with an option where none is allowed", "[slurm]\nshared_dir = \"/s\"\nallow_options = \"\"\n[[runner.rules]]\noptions = \"--nice=1\"\n", "", "rule 1: options: --nice is not in slurm.allow_options"},
		{"unknown word in a rule", "[[runner.rules]]\npartitions = \"a\"\n", "", `unknown setting "runner.rules.partitions"`},
		{"links too long", "[links]\nupload = \"30d\"\n", "", "links.upload"},
	}
	for _, tt := range tests {
		must.Fail(t, tt.name, must.Error2(loadText(t, tt.text, tt.variable)), tt.want)
	}
}
