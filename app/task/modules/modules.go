// Package modules determines how environment modules (Environment Modules or Lmod) change
// the environment of a program.
package modules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
)

// initScripts define the module command in a shell. The first one that exists is sourced.
var initScripts = []string{
	"/etc/profile.d/z00_lmod.sh", "/etc/profile.d/lmod.sh", "/etc/profile.d/modules.sh",
	"/usr/share/lmod/lmod/init/bash", "/usr/share/modules/init/bash", "/usr/share/Modules/init/bash",
}

// loadTimeout limits the loading of modules, which normally takes less than a second.
const loadTimeout = time.Minute

// Init returns the script that defines the module command: the configured one, or the
// first installed one.
func Init(configured string) (string, error) {
	scripts := initScripts
	if configured != "" {
		scripts = []string{configured}
	}
	for _, path := range scripts {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	if configured != "" {
		return "", fmt.Errorf("its programs come from environment modules, but %s (modules.init) does not exist", configured)
	}
	return "", errors.New("its programs come from environment modules, which are not installed here; set modules.init to their init script")
}

// script loads modules in a shell that reads no startup files. It prints the environment
// before and after.
const script = `. "$0" >/dev/null && env -0 && printf '\0' && module load "$@" >/dev/null && env -0`

// Load returns the variables that loading the modules changes in an environment. Errors
// contain the message of the module command.
func Load(ctx context.Context, init string, names, env []string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, "bash", append([]string{"--noprofile", "--norc", "-c", script, init}, names...)...)
	var out, problem process.Output
	c.Env, c.Dir, c.Stdout, c.Stderr, c.WaitDelay = env, "/", &out, &problem, time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	err := c.Run()
	before, after, found := bytes.Cut(out.Bytes(), []byte("\x00\x00"))
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("the modules %s were not loaded within %s", quoted(names), loadTimeout)
	case err != nil || !found:
		return nil, fmt.Errorf("the modules %s can't be loaded: %s", quoted(names), reason(problem.String(), err))
	}
	return changes(variables(before), variables(after)), nil
}

func quoted(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }

// reason returns the module command's error message.
func reason(said string, err error) string {
	for line := range strings.Lines(said) {
		if _, rest, found := strings.Cut(line, "ERROR: "); found {
			return protocol.CleanText(rest)
		}
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := protocol.CleanText(lines[len(lines)-1]); last != "" {
		return last
	}
	if err == nil {
		return "the module command printed no environment"
	}
	return err.Error()
}

func variables(environment []byte) map[string]string {
	all := map[string]string{}
	for entry := range bytes.SplitSeq(environment, []byte{0}) {
		if name, value, found := strings.Cut(string(entry), "="); found {
			all[name] = value
		}
	}
	return all
}

// own lists variables of shells and of the module command; prefixes lists prefixes of the
// module command's variables.
var (
	own      = []string{"_", "SHLVL", "PWD", "OLDPWD", "ENV", "BASH_ENV", "LOADEDMODULES", "_LMFILES_"}
	prefixes = []string{"BASH_FUNC_", "__MODULES_", "_ModuleTable", "__LMOD", "LMOD_", "MODULE"}
)

// changes returns the variables that differ. Removed ones are empty.
func changes(before, after map[string]string) map[string]string {
	changed := map[string]string{}
	differ := func(name, value string) {
		ofPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if !slices.Contains(own, name) && !slices.ContainsFunc(prefixes, ofPrefix) {
			changed[name] = value
		}
	}
	for name, value := range after {
		if old, was := before[name]; !was || old != value {
			differ(name, value)
		}
	}
	for name := range before {
		if _, is := after[name]; !is {
			differ(name, "")
		}
	}
	return changed
}

// Folders returns the folders that changed variables point to: the whole installation
// prefix if a folder has a usual name such as bin or lib.
func Folders(changed map[string]string, before []string) []string {
	var folders []string
	for name, value := range changed {
		old := ""
		if i := slices.IndexFunc(before, func(e string) bool { return strings.HasPrefix(e, name+"=") }); i >= 0 {
			old = before[i][len(name)+1:]
		}
		known := filepath.SplitList(old)
		for _, path := range filepath.SplitList(value) {
			if folder := prefix(path); folder != "" && !slices.Contains(known, path) && !slices.Contains(folders, folder) {
				folders = append(folders, folder)
			}
		}
	}
	slices.Sort(folders)
	return folders
}

// usual lists common folders of an installation prefix.
var usual = []string{"bin", "sbin", "lib", "lib64", "libexec", "share", "include"}

// prefix returns the folder to make readable for a path, or "" if it is no folder or is
// as broad as /opt or a home directory.
func prefix(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	path = filepath.Clean(path)
	if above := filepath.Dir(path); slices.Contains(usual, filepath.Base(path)) && strings.Count(above, "/") >= 2 && filepath.Dir(above) != "/home" {
		path = above
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() || strings.Count(path, "/") < 2 || filepath.Dir(path) == "/home" {
		return ""
	}
	return path
}
