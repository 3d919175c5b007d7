// Package remote implements the user commands, which work with a service on any machine.
// They send API requests and show the responses; the service enforces the rules. Each
// file holds one group of commands. All of them use a session (session.go): a service,
// usually from a profile (profile.go), and the output. A job is described by flags
// (describe.go) and files (jobfile.go).
package remote

import (
	"github.com/spf13/cobra"
)

// Commands returns the user commands of this version of the program.
func Commands(version string) []*cobra.Command {
	return []*cobra.Command{
		whoamiCommand(), logoutCommand(), openCommand(), algorithmCommand(),
		submitCommand(), runCommand(), batchCommand(), rerunCommand(), estimateCommand(),
		jobsCommand(), statusCommand(), waitCommand(), logsCommand(), eventsCommand(), topCommand(),
		resultsCommand(), tableCommand(), plotCommand(), shareCommand(),
		cancelCommand(), retryCommand(), removeCommand(), filesCommand(), mcpCommand(version),
	}
}
