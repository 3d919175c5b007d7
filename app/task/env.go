package task

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// defaultPath is where programs are looked for if nobody says.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// inherited are the variables that pass from the service to its tasks and
// from a task to its programs: where programs and their libraries are, and how
// the site writes. Everything else stays behind, above all secrets.
var inherited = []string{"PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ"}

// InheritedEnv gives what may pass of this process's environment.
func InheritedEnv() []string {
	var env []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// environment is what programs of the task see, and all they see. The
// algorithm's own variables may replace what is inherited; what marks the task
// and shares out the devices they may not.
func (s *Spec) environment(work string) []string {
	env := map[string]string{"PATH": defaultPath}
	for _, entry := range InheritedEnv() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	env["HOME"] = work
	env["TMPDIR"] = filepath.Join(work, TempDir)
	maps.Copy(env, s.Env)
	env[TokenVariable] = s.Token
	env["MOLRUN_CPUS"] = fmt.Sprint(s.CPUs)
	env["CUDA_VISIBLE_DEVICES"] = s.visibleGPUs()

	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// visibleGPUs gives the leased devices, or else those that a cluster has
// granted to this process. Neither is "": a program that takes what it finds
// then finds nothing.
func (s *Spec) visibleGPUs() string {
	if len(s.GPUs) > 0 {
		return strings.Join(s.GPUs, ",")
	}
	return os.Getenv("CUDA_VISIBLE_DEVICES")
}

// grantedGPUs gives the same as a list.
func (s *Spec) grantedGPUs() []string {
	return strings.FieldsFunc(s.visibleGPUs(), func(r rune) bool { return r == ',' })
}
