package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"molrun/app/executor/local"
)

// lookAtSandbox tells what keeps jobs from the rest of the machine. A service may
// be allowed less than whoever asks, so one that runs is asked itself.
func lookAtSandbox(ctx context.Context, p *patient) []finding {
	if !p.running {
		return p.trySandbox(ctx)
	}
	i, err := controlClient(p.data).Isolation(ctx)
	if err != nil {
		return say(doubtful, "the service does not tell what it does for jobs: %v", err)
	}
	return p.judgeSandbox(strings.Contains(i.Kind, "bubblewrap"), i.Sentence)
}

// trySandbox does what a start would, but for cgroups: to try these moves
// processes about.
func (p *patient) trySandbox(ctx context.Context) []finding {
	program, err := os.Executable()
	if err != nil {
		return say(doubtful, "%v", fmt.Errorf("find this program: %w", err))
	}
	i, err := local.ProbeSandbox(ctx, local.IsolationOptions{Program: program, Sandbox: p.config.Runner.Sandbox})
	if err != nil {
		return say(wrong, "no job can start: %s", message(err))
	}
	return p.judgeSandbox(i.Bubblewrap != "", i.Sentence()+" Whether it gets a cgroup shows when the service starts.")
}

func (p *patient) judgeSandbox(sandboxed bool, sentence string) []finding {
	switch {
	case sandboxed:
		return say(fine, "%s", sentence)
	case p.config.Runner.Sandbox == local.SandboxOff:
		return say(doubtful, "%s Set runner.sandbox to \"auto\" unless every user may see what the service sees.", sentence)
	}
	return say(doubtful, "%s Until then a job sees what the service sees; runner.sandbox = \"required\" lets none start so.", sentence)
}
