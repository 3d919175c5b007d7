package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/cli/doctor"
	"molrun/app/server/host"
	"molrun/app/test/must"
	"molrun/app/test/smi"
	"molrun/app/test/whole"
	"molrun/storage/kv/boltfile"
)

// diagnosis runs `molrun doctor --json` and returns the findings by check, and the exit
// code.
func (s *instance) diagnosis(args ...string) (findings map[string]string, code int) {
	s.t.Helper()
	out, errs, code := s.run(append([]string{"doctor", "--json"}, args...)...)
	var all []doctor.Finding
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		s.t.Fatalf("%v in %s%s", err, out, errs)
	}
	findings = map[string]string{}
	for _, f := range all {
		findings[f.Check] += fmt.Sprintf("%s: %s\n", f.Result, f.Text)
		if f.Text == "" {
			s.t.Errorf("%s has no text", f.Check)
		}
	}
	return findings, code
}

// initialized returns a stopped server whose data directory has been used.
func initialized(t *testing.T, config string, env ...string) *instance {
	t.Helper()
	s := unstarted(t, config, env...)
	s.ok("key", "create", "--organization", "lab", "--email", "ann@lab.example")
	return s
}

func TestDoctorFindsNoProblemsInAHealthyInstallation(t *testing.T) {
	t.Parallel()
	healthy := func(s *instance, args ...string) map[string]string {
		t.Helper()
		findings, _ := s.diagnosis(args...)
		for check, text := range findings {
			if strings.Contains(text, string(doctor.Problem)) && check != "free space" { // depends on this machine
				t.Errorf("%s: %s", check, text)
			}
		}
		return findings
	}
	fresh := unstarted(t, "listen = \"127.0.0.1:0\"\n")
	must.OK(t, os.RemoveAll(fresh.data()))
	healthy(fresh)
	healthy(initialized(t, "listen = \"127.0.0.1:0\"\n"))
	running := startServer(t, serverOptions{})
	findings := healthy(running, "--listen", strings.TrimPrefix(running.base, "http://"))
	for check, want := range map[string]string{"database": "in use by", "service": "running on", "address": "the service listens", "open files": "the service can open"} {
		must.Contain(t, check+" of a running service", findings[check], want)
	}
	if findings := healthy(running); !strings.Contains(findings["address"], "the service listens on "+running.base+", a port that it chose") {
		t.Errorf("address with a port of its own: %s", findings["address"])
	}
	other, err := whole.FreeAddress()
	must.OK(t, err)
	if findings, _ := running.diagnosis("--listen", other); !strings.Contains(findings["address"], running.base+", not on "+other) {
		t.Errorf("another address: %s", findings["address"])
	}
	must.Contain(t, "the table", running.ok("doctor", "--listen", strings.TrimPrefix(running.base, "http://")), "WHAT TO DO")
}

const missingProgram = `format = 1
type = "far"
version = "1"
title = "Far"
max_runtime = "10m"
executor = "local"
[resources]
cpus = 1
memory = "64MiB"
[[steps]]
name = "run"
command = ["no-such-program"]
`

// TestDoctorFindsEachProblem causes each problem that the tests of package doctor only
// simulate or leave out.
func TestDoctorFindsEachProblem(t *testing.T) {
	t.Parallel()
	in := func(s *instance, name string) string { return filepath.Join(s.data(), name) }
	tests := []struct {
		name, check, says string
		config            string
		cause             func(*testing.T, *instance)
	}{
		{"a misspelt setting", "configuration", "did you mean", "lisen = \":1\"\n", nil},
		{"a file in place of the data directory", "data directory", "is not a directory", "", func(t *testing.T, s *instance) {
			must.OK(t, os.RemoveAll(s.data()))
			must.OK(t, os.WriteFile(s.data(), nil, 0o600))
		}},
		{"a truncated database", "database", "restore a backup", "", func(t *testing.T, s *instance) {
			must.OK(t, os.Truncate(in(s, host.Database), 9000))
		}},
		{"a database that has lost commits", "database", "are lost", "", func(t *testing.T, s *instance) {
			changeCommits(t, in(s, host.Database), func(c *boltfile.Commits) { c.Commit += 5 })
		}},
		{"a secret open to others", "secret", "run chmod 600", "", func(t *testing.T, s *instance) {
			must.OK(t, os.Chmod(in(s, "secret"), 0o644))
		}},
		{"a damaged secret", "secret", "damaged", "", func(t *testing.T, s *instance) {
			must.OK(t, os.WriteFile(in(s, "secret"), []byte("{}"), 0o600))
		}},
		{"a mistake in an algorithm file", "algorithms", "comand", "algorithms = \"algorithms\"\n", func(t *testing.T, s *instance) {
			s.algorithm(strings.Replace(missingProgram, "command", "comand", 1))
		}},
		{"a cluster without its commands", "slurm", "has no sbatch, squeue", "[slurm]\nshared_dir = \"@DIR@/shared\"\npath = \"@DIR@\"\n", func(t *testing.T, s *instance) {
			must.OK(t, os.Mkdir(in(s, "../shared"), 0o700))
		}},
		{"a missing shared folder", "slurm", "mount or create it", "[slurm]\nshared_dir = \"@DIR@/shared\"\n", nil},
		{"a shared folder open to others", "slurm", "run chmod 700", "[slurm]\nshared_dir = \"@DIR@/shared\"\n", func(t *testing.T, s *instance) {
			must.OK(t, os.Mkdir(in(s, "../shared"), 0o700))
			must.OK(t, os.Chmod(in(s, "../shared"), 0o770))
		}},
		{"a shared folder that overlaps the data directory", "slurm", "overlap", "[slurm]\nshared_dir = \"@DIR@/shared\"\n", func(t *testing.T, s *instance) {
			must.OK(t, os.Symlink(s.dir, in(s, "../shared")))
		}},
		{"an address of another machine", "address", "no network interface", "listen = \"192.0.2.1:8080\"\n", nil},
		{"a certificate that has expired", "certificate", "renew it", "[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n", func(t *testing.T, s *instance) {
			s.certificate("cert.pem", "key.pem", time.Now().AddDate(-5, 0, 0))
		}},
		{"a key of another certificate", "certificate", "can't be used", "[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n", func(t *testing.T, s *instance) {
			s.certificate("cert.pem", "first.pem", time.Now())
			s.certificate("other.pem", "key.pem", time.Now())
		}},
		{"a missing GPU", "gpus", "GPU-cccc is not listed by nvidia-smi", "[runner]\ngpus = [\"GPU-aaaa\", \"GPU-cccc\"]\n", func(t *testing.T, s *instance) {
			cards := smi.New(t).Cards(0, smi.Card(0, "GPU-aaaa"), smi.Card(1, "GPU-bbbb"))
			s.program("nvidia-smi", "#!/bin/sh\nexec "+cards.Program+" \"$@\"\n")
		}},
		{"a required sandbox that is not available", "sandbox", "Operation not permitted", "[runner]\nsandbox = \"required\"\n", func(t *testing.T, s *instance) {
			s.program("bwrap", standInBubblewrap)
		}},
		{"a broken GPU driver", "gpus", "fix the driver", "", func(t *testing.T, s *instance) {
			s.program("nvidia-smi", "#!/bin/sh\necho 'Failed to initialize NVML' >&2\nexit 9\n")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := initialized(t, "")
			if tt.cause != nil {
				tt.cause(t, s)
			}
			config := fmt.Sprintf("data = %q\n", s.data()) + strings.ReplaceAll(tt.config, "@DIR@", s.dir)
			must.OK(t, os.WriteFile(filepath.Join(s.dir, "config.toml"), []byte(config), 0o600))
			findings, code := s.diagnosis()
			if code != exitFailed || !strings.Contains(findings[tt.check], string(doctor.Problem)+": ") || !strings.Contains(findings[tt.check], tt.says) {
				t.Errorf("exit code %d; %s: %q, want a problem with %q", code, tt.check, findings[tt.check], tt.says)
			}
		})
	}
}

// standInBubblewrap fails like bwrap on machines that forbid user namespaces.
const standInBubblewrap = `#!/bin/sh
[ "$1" != --help ] || exit 0
echo 'bwrap: No permissions to create new namespace: Operation not permitted' >&2
exit 1
`

func changeCommits(t *testing.T, database string, change func(*boltfile.Commits)) {
	t.Helper()
	c, err := boltfile.ReadCommits(database)
	must.OK(t, err)
	change(&c)
	text, err := json.Marshal(c)
	must.OK(t, err)
	must.OK(t, os.WriteFile(database+".commits", text, 0o600))
}

// algorithm writes a file to the server's algorithms directory.
func (s *instance) algorithm(text string) {
	s.t.Helper()
	must.OK(s.t, os.MkdirAll(filepath.Join(s.dir, "algorithms"), 0o700))
	must.OK(s.t, os.WriteFile(filepath.Join(s.dir, "algorithms", "far.toml"), []byte(text), 0o600))
}

// certificate creates a certificate in the server's directory, as if issued at the given
// time.
func (s *instance) certificate(cert, key string, now time.Time) {
	s.t.Helper()
	must.OK(s.t, host.EnsureSelfSigned(filepath.Join(s.dir, cert), filepath.Join(s.dir, key), []string{"localhost"}, now))
}

// program writes a program into a new directory, which it puts first on PATH.
func (s *instance) program(name, text string) {
	s.t.Helper()
	bin := s.t.TempDir()
	must.OK(s.t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700))
	s.env = append(s.env, "PATH="+bin+":"+os.Getenv("PATH"))
}

func TestDoctorReportsALowOpenFileLimit(t *testing.T) {
	t.Parallel()
	s := initialized(t, "")
	c := exec.Command("sh", "-c", `ulimit -n 512; exec "$0" doctor --listen 127.0.0.1:0`, molrun)
	c.Dir, c.Env = s.dir, s.command().Env
	out, err := c.Output()
	if err == nil || !strings.Contains(string(out), "can open only 512 files; set LimitNOFILE=65536") {
		t.Errorf("%v: %s", err, out)
	}
}
