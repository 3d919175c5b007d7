package task

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"molrun/app/task/process"
	"molrun/app/task/protocol"
)

// defaultPath is the PATH of programs if the service has none.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// inherited lists the variables that tasks inherit from the service and programs from
// their task: search paths, language and time zone. No others are passed on, because they
// might hold secrets.
var inherited = []string{"PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ"}

// InheritedEnv returns those variables of this process's environment that tasks and
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

// gpuVariable lists the GPUs that a program can use.
const gpuVariable = "CUDA_VISIBLE_DEVICES"

// hookVariable lists the GPUs for the hooks that make them visible in containers. Many
// images set it to all, which would give every GPU to a job that has none.
const hookVariable = "NVIDIA_VISIBLE_DEVICES"

// secondsVariable holds the remaining run time of the task when a step starts.
const secondsVariable = "MOLRUN_SECONDS"

// threadVariables set how many threads a program's libraries start.
var threadVariables = []string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}

// environment returns the complete environment of a step's program. site holds the
// variables set by environment modules. Variables of the algorithm and of the step
// replace inherited ones, except those that identify the task and assign its CPUs, GPUs
// and time. By default, libraries start as many threads as the task has CPUs.
func (s *Spec) environment(work string, begin time.Time, site, step map[string]string) []string {
	env := map[string]string{"PATH": defaultPath}
	for _, entry := range InheritedEnv() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	maps.Copy(env, site)
	env["HOME"] = work
	env["TMPDIR"] = filepath.Join(work, TempDir)
	env["PYTHONUNBUFFERED"] = "1" // so the log is complete if Python is killed
	if s.CPUs > 0 {
		for _, name := range threadVariables {
			env[name] = fmt.Sprint(s.CPUs)
		}
	}
	maps.Copy(env, s.Env)
	maps.Copy(env, step)
	env[process.TokenVariable] = s.Token
	env["MOLRUN_CPUS"] = fmt.Sprint(s.CPUs)
	delete(env, secondsVariable)
	if s.MaxRuntimeSeconds > 0 {
		left := time.Until(begin.Add(time.Duration(s.MaxRuntimeSeconds) * time.Second))
		env[secondsVariable] = fmt.Sprint(max(0, int64(left.Seconds())))
	}
	env[gpuVariable] = s.visibleGPUs()
	env[hookVariable] = cmp.Or(env[gpuVariable], "void")

	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// fromImage lists the variables that a container takes from its image.
var fromImage = []string{"PATH", "LD_LIBRARY_PATH"}

// environment returns the environment of a step. In a container it adds to that of the
// image.
func (s *shim) environment(step protocol.Step) []string {
	env := s.spec.environment(s.work, s.begin, s.site, step.Env)
	if s.isolation.Runtime == nil {
		return env
	}
	if visible := s.isolation.Runtime.Kind.VisibleGPUs(s.spec.grantedGPUs()); visible != "" {
		env = append(slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, gpuVariable+"=") }), gpuVariable+"="+visible)
	}
	return slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, own := s.spec.Env[name]
		_, ofStep := step.Env[name]
		return slices.Contains(fromImage, name) && !own && !ofStep
	})
}

// visibleGPUs returns the leased devices, or otherwise those that a cluster granted to
// this process. If there are none, it returns "", which hides all GPUs: programs would
// otherwise use every GPU they find.
func (s *Spec) visibleGPUs() string {
	if len(s.GPUs) > 0 {
		return strings.Join(s.GPUs, ",")
	}
	return os.Getenv(gpuVariable)
}

// grantedGPUs returns the visible GPUs as a list.
func (s *Spec) grantedGPUs() []string {
	return strings.FieldsFunc(s.visibleGPUs(), func(r rune) bool { return r == ',' })
}
