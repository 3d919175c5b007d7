package doctor

import (
	"context"
	"strings"

	"molrun/app/base/fault"
	"molrun/app/executor/local"
	"molrun/app/server/host"
)

// checkSandbox reports how jobs are isolated from the rest of the machine. It queries the
// running service, which may have fewer permissions than the caller.
func checkSandbox(ctx context.Context, in *installation) []Finding {
	if !in.running {
		return in.trySandbox(ctx)
	}
	i, err := host.Control(in.data).Isolation(ctx)
	if err != nil {
		return finding(Warning, "the service does not report its isolation of jobs: %v", err)
	}
	return in.gradeSandbox(strings.Contains(i.Kind, "bubblewrap"), i.Sentence)
}

// trySandbox repeats the test that the service runs at startup, except for cgroups:
// testing those would move processes.
func (in *installation) trySandbox(ctx context.Context) []Finding {
	i, err := local.ProbeSandbox(ctx, local.IsolationOptions{Sandbox: in.config.Runner.Sandbox})
	if err != nil {
		return finding(Problem, "no job can start: %s", fault.Text(err))
	}
	return in.gradeSandbox(i.Bubblewrap != "", i.Sentence()+" Whether it gets a cgroup is known when the service starts.")
}

func (in *installation) gradeSandbox(sandboxed bool, sentence string) []Finding {
	switch {
	case sandboxed:
		return finding(OK, "%s", sentence)
	case in.config.Runner.Sandbox == local.SandboxOff:
		return finding(Warning, "%s Set runner.sandbox to \"auto\", unless every user is allowed to read what the service can read.", sentence)
	}
	return finding(Warning, "%s Until then, jobs can read what the service can read; with runner.sandbox = \"required\", none starts without a sandbox.", sentence)
}
