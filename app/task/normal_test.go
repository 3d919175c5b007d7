package task

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"molrun/app/task/protocol"
	"molrun/app/test/must"
)

// home makes a folder that resembles a home directory with a secret.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, ".ssh", "id_ed25519"), "secret key\n")
	put(t, filepath.Join(dir, ".bashrc"), "secret variable\n")
	put(t, filepath.Join(dir, "thesis.txt"), "secret thesis\n")
	return dir
}

// put writes an executable file.
func put(t *testing.T, path, text string) {
	t.Helper()
	must.Write(t, path, text)
	must.OK(t, os.Chmod(path, 0o755))
}

// needs skips a test if a real program is missing.
func needs(t *testing.T, argv ...string) {
	t.Helper()
	err := exec.Command(argv[0], argv[1:]...).Run()
	if err != nil {
		must.Skip(t, "%q fails here: %v", argv, err)
	}
}

// succeeds runs an attempt in a sandbox and checks that its log contains want.
func (a *attempt) succeeds(want string) {
	a.t.Helper()
	o := a.start().outcome()
	if log := a.read(LogFile); o.Cause != protocol.CauseDone || !strings.Contains(log, want) {
		a.t.Errorf("outcome %+v, log %s; want %q", o, log, want)
	}
}

func TestMatplotlibDrawsInTheSandbox(t *testing.T) {
	needs(t, "/usr/bin/python3", "-c", "import matplotlib")
	a := sandboxed(t)
	a.spec.Steps = []protocol.Step{{Argv: []string{"/usr/bin/python3", "-c", `
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.plot([1, 2, 3])
plt.savefig("out/plot.png")
print("drawn by the file", matplotlib.matplotlib_fname())`}}}
	a.succeeds("drawn by the file /etc/matplotlibrc")
	if png := a.read(WorkDir, OutDir, "plot.png"); !strings.HasPrefix(png, "\x89PNG") {
		t.Errorf("the plot is %.20q", png)
	}
}

// TestMPIProgramRunsInTheSandbox has two processes of one program exchange messages
// through shared memory.
func TestMPIProgramRunsInTheSandbox(t *testing.T) {
	needs(t, "mpirun", "--version")
	needs(t, "lmp", "-help")
	a := sandboxed(t, `printf '%s\n' 'units lj' 'lattice fcc 0.84' 'region box block 0 4 0 4 0 4' 'create_box 1 box' 'create_atoms 1 box' \
	'mass 1 1.0' 'velocity all create 1.4 87' 'pair_style lj/cut 2.5' 'pair_coeff 1 1 1.0 1.0' 'fix 1 all nve' 'run 20' > in.lj
mpirun --allow-run-as-root --oversubscribe -n 2 lmp -in in.lj`)
	a.succeeds(" MPI processor grid")
	must.Contain(t, "log", a.read(LogFile), "on 2 procs for 20 steps with 256 atoms")
}

// TestEnvironmentInAHomeIsFound runs programs installed in the usual ways in a home
// directory. Nothing needs to be declared, and nothing else in the home is visible.
func TestEnvironmentInAHomeIsFound(t *testing.T) {
	tests := map[string]func(t *testing.T, home string) (program string){
		"conda": func(t *testing.T, home string) string {
			prefix := filepath.Join(home, "miniconda3", "envs", "md")
			put(t, filepath.Join(prefix, "conda-meta", "history"), "")
			put(t, filepath.Join(prefix, "lib", "library"), "echo found\n")
			put(t, filepath.Join(prefix, "bin", "tool"), "#!/bin/sh\n. \"$(dirname \"$0\")/../lib/library\"\n")
			return filepath.Join(prefix, "bin", "tool")
		},
		"prefix": func(t *testing.T, home string) string {
			put(t, filepath.Join(home, "gromacs", "share", "top"), "echo found\n")
			put(t, filepath.Join(home, "gromacs", "lib", "so"), "")
			put(t, filepath.Join(home, "gromacs", "bin", "gmx"), "#!/bin/sh\n. \"$(dirname \"$0\")/../share/top\"\n")
			return filepath.Join(home, "gromacs", "bin", "gmx")
		},
		"script beside its interpreter's environment": func(t *testing.T, home string) string {
			python := filepath.Join(home, "env", "bin", "python")
			put(t, filepath.Join(home, "env", "lib", "library"), "echo found\n")
			put(t, python, "#!/bin/sh\n. '"+filepath.Join(home, "env", "lib", "library")+"'\n")
			put(t, filepath.Join(home, "scripts", "run.py"), "#!"+python+"\n")
			return filepath.Join(home, "scripts", "run.py")
		},
		"interpreter on PATH": func(t *testing.T, home string) string {
			put(t, filepath.Join(home, "run.sh"), "#!/usr/bin/env -S sh -e\necho found\n")
			return filepath.Join(home, "run.sh")
		},
		"links": func(t *testing.T, home string) string {
			put(t, filepath.Join(home, "versions", "1", "bin", "tool"), "#!/bin/sh\n. '"+filepath.Join(home, "versions", "1", "lib", "library")+"'\n")
			put(t, filepath.Join(home, "versions", "1", "lib", "library"), "echo found\n")
			for _, l := range [][2]string{{"a/tool", "../b/tool"}, {"b/tool", filepath.Join(home, "versions", "1", "bin", "tool")}} {
				path := filepath.Join(home, l[0])
				must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
				must.OK(t, os.Symlink(l[1], path))
			}
			return filepath.Join(home, "a", "tool")
		},
		"pyenv": func(t *testing.T, home string) string {
			root := filepath.Join(home, ".pyenv")
			put(t, filepath.Join(root, "versions", "3.11", "bin", "python3"), "#!/bin/sh\necho found\n")
			put(t, filepath.Join(root, "libexec", "pyenv"), "#!/bin/sh\nshift; exec '"+root+"/versions/3.11/bin/'\"$1\"\n")
			put(t, filepath.Join(root, "shims", "python3"), "#!/usr/bin/env bash\nexec '"+root+"/libexec/pyenv' exec \"${0##*/}\" \"$@\"\n")
			return filepath.Join(root, "shims", "python3")
		},
		"local": func(t *testing.T, home string) string {
			put(t, filepath.Join(home, ".local", "lib", "library"), "echo found\n")
			put(t, filepath.Join(home, ".local", "share", "keyrings"), "secret keyring\n")
			put(t, filepath.Join(home, ".local", "bin", "tool"), "#!/bin/sh\n. \"$(dirname \"$0\")/../lib/library\"\n")
			return filepath.Join(home, ".local", "bin", "tool")
		},
	}
	for name, install := range tests {
		t.Run(name, func(t *testing.T) {
			home := home(t)
			a := sandboxed(t)
			a.spec.Steps = []protocol.Step{
				{Argv: []string{install(t, home)}},
				{Argv: []string{"sh", "-c", "! grep -rs 'secret [ktv]' '" + home + "'"}},
			}
			a.succeeds("found")
			look := sandboxed(t)
			look.spec.Steps = []protocol.Step{{Argv: []string{a.spec.Steps[0].Argv[0]}}}
			must.OK(t, os.WriteFile(a.spec.Steps[0].Argv[0], []byte("#!/bin/sh\ngrep -rs 'secret [ktv]' '"+home+"' && exit 1; echo nothing\n"), 0o755))
			look.succeeds("nothing")
		})
	}
}

// TestNamedFilesAreReadable has commands name files: one is run by its interpreter, and
// others must stay hidden because they hold more than a program, unless the algorithm
// lists them.
func TestNamedFilesAreReadable(t *testing.T) {
	home, hidden := home(t), t.TempDir()
	script, link := filepath.Join(home, "fold.sh"), filepath.Join(home, "link.sh")
	put(t, script, "echo folded; cat '"+filepath.Join(home, "thesis.txt")+"' && exit 1; exit 0\n")
	must.OK(t, os.Symlink("fold.sh", link))
	secret, toSecret := filepath.Join(hidden, "jobs.db"), filepath.Join(home, "db")
	put(t, secret, "secret records\n")
	must.OK(t, os.Symlink(secret, toSecret))
	key := filepath.Join(home, ".ssh", "id_ed25519")
	for _, path := range []string{script, link} {
		a := sandboxed(t)
		a.isolation.Sandbox.Named = []string{path, filepath.Join(home, "no-such-file")}
		a.spec.Steps = []protocol.Step{{Argv: []string{"sh", path}}}
		a.succeeds("folded\n")
	}
	token, toKey := filepath.Join(home, ".config", "token"), filepath.Join(home, "keys", "config")
	put(t, filepath.Join(home, ".ssh", "config"), "secret host\n")
	must.OK(t, os.Symlink(".ssh", filepath.Join(home, "keys")))
	put(t, token, "secret token\n")
	a := sandboxed(t, fmt.Sprintf("grep -rs secret '%s' '%s' /etc/shadow | grep . && exit 1; for f in '%[1]s/.bashrc' /etc/pam.d/other '%[3]s'; do [ -e $f ] && exit 2; done; exit 0", home, hidden, toKey))
	a.isolation.Hide = []string{hidden}
	a.isolation.Sandbox.Named = []string{home, secret, toSecret, key, toKey, token, "/etc/shadow", "/etc/pam.d/other", hidden}
	if o := a.start().outcome(); o.Cause != protocol.CauseDone {
		t.Errorf("a named file that must stay hidden is visible: %+v, %s", o, a.read(LogFile))
	}
	a = sandboxed(t, fmt.Sprintf("cat '%s'", key))
	a.isolation.Sandbox.Read = []string{key}
	a.succeeds("secret key\n")
}

// TestHiddenPathsStayHidden has an algorithm list a folder that contains the service's
// data.
func TestHiddenPathsStayHidden(t *testing.T) {
	inEachSandbox(t, func(t *testing.T, sandboxed makeAttempt) {
		shared := t.TempDir()
		data, config := filepath.Join(shared, "molrun", "data"), filepath.Join(shared, "molrun", "config.toml")
		link := filepath.Join(t.TempDir(), "link")
		put(t, filepath.Join(data, "jobs.db"), "secret records\n")
		put(t, filepath.Join(data, "algorithms", "a", "tool"), "seen\n")
		put(t, config, "secret settings\n")
		put(t, filepath.Join(data, "tls", "key"), "secret key\n")
		put(t, filepath.Join(shared, "weights"), "seen\n")
		must.OK(t, os.Symlink(data, link))
		for _, listed := range [][]string{{shared}, {filepath.Dir(data)}, {data}, {filepath.Dir(data), shared, data}, {filepath.Join(data, "tls"), shared}} {
			a := sandboxed(t, fmt.Sprintf(
				"grep -rs secret '%[1]s' | grep . && exit 1; touch '%[2]s/x' && exit 2; ls '%[2]s' | grep -v -e algorithms -e tls && exit 3; cat '%[2]s/algorithms/a/tool'", shared, data))
			a.isolation.Hide = []string{link, config, filepath.Join(data, "tls", "key")}
			a.isolation.Sandbox.Read = append(slices.Clone(listed), filepath.Join(data, "algorithms", "a"))
			a.succeeds("seen\n")
		}
	})
}

// TestSecretsOfTheMachineStayOutside reads files that the service itself might be able to
// read.
func TestSecretsOfTheMachineStayOutside(t *testing.T) {
	a := sandboxed(t, `
for f in /etc/shadow /etc/gshadow /etc/sudoers /etc/ssl/private /etc/ssh /etc/munge /root /home /srv /run/dbus /var/lib; do
	[ -e $f ] && { echo "$f is seen"; exit 1; }
done
find /etc -type f ! -perm -o=r 2> /dev/null | grep . && exit 2
touch /etc/x 2> /dev/null && exit 3
touch /opt/x 2> /dev/null && exit 4
find /usr/bin/su -perm -4000 | grep . && echo 1234 | su -c true && exit 5
cat /etc/nsswitch.conf`)
	a.succeeds("hosts:")
}
