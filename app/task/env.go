package task

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"molrun/app/task/process"
)

// defaultPath is the PATH of programs if the service has none.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// inherited are the variables that pass from the service to its tasks and from a
// task to its programs: search paths, language and time zone. All others stay
// behind, because they may hold secrets.
var inherited = []string{"PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ"}

// InheritedEnv returns the part of this process's environment that tasks and
// programs inherit.
func InheritedEnv() []string {
	var env []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// environment is the whole environment of the task's programs. The algorithm's
// variables replace inherited ones, but not those that mark the task and assign
// its CPUs and GPUs.
func (s *Spec) environment(work string) []string {
	env := map[string]string{"PATH": defaultPath}
	for _, entry := range InheritedEnv() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	env["HOME"] = work
	env["TMPDIR"] = filepath.Join(work, TempDir)
	maps.Copy(env, s.Env)
	env[process.TokenVariable] = s.Token
	env["MOLRUN_CPUS"] = fmt.Sprint(s.CPUs)
	env["CUDA_VISIBLE_DEVICES"] = s.visibleGPUs()

	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// visibleGPUs returns the leased devices, or else those that a cluster has granted
// to this process. If there are none it is "", which hides all GPUs: programs would
// otherwise use every one that they find.
func (s *Spec) visibleGPUs() string {
	if len(s.GPUs) > 0 {
		return strings.Join(s.GPUs, ",")
	}
	return os.Getenv("CUDA_VISIBLE_DEVICES")
}

// grantedGPUs returns the same as a list.
func (s *Spec) grantedGPUs() []string {
	return strings.FieldsFunc(s.visibleGPUs(), func(r rune) bool { return r == ',' })
}
