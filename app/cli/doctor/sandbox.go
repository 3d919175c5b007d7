package doctor

import (
	"context"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/executor/local"
	"molrun/app/server/host"
)

// checkSandbox says what isolates jobs from the rest of the machine. The service may
// have fewer permissions than the caller, so a running service is asked.
func checkSandbox(ctx context.Context, in *installation) []Finding {
	if !in.running {
		return in.trySandbox(ctx)
	}
	i, err := host.Control(in.data).Isolation(ctx)
	if err != nil {
		return finding(Warning, "the service does not tell what it does for jobs: %v", err)
	}
	return in.gradeSandbox(strings.Contains(i.Kind, "bubblewrap"), i.Sentence)
}

// trySandbox does what a start of the service does, except for cgroups: trying them
// would move processes.
func (in *installation) trySandbox(ctx context.Context) []Finding {
	i, err := local.ProbeSandbox(ctx, local.IsolationOptions{Sandbox: in.config.Runner.Sandbox})
	if err != nil {
		return finding(Problem, "no job can start: %s", fault.Text(err))
	}
	return in.gradeSandbox(i.Bubblewrap != "", i.Sentence()+" Whether it gets a cgroup shows when the service starts.")
}

func (in *installation) gradeSandbox(sandboxed bool, sentence string) []Finding {
	switch {
	case sandboxed:
		return finding(OK, "%s", sentence)
	case in.config.Runner.Sandbox == local.SandboxOff:
		return finding(Warning, "%s Set runner.sandbox to \"auto\" unless every user may see what the service sees.", sentence)
	}
	return finding(Warning, "%s Until then a job sees what the service sees; runner.sandbox = \"required\" lets none start so.", sentence)
}
