// Package remote has the commands of users: what they do with a service, which may be
// on any machine. Each sends requests of the API and shows the answers; the rules are
// the service's. Each file has one group of commands. All of them work with a session
// (session.go): a service, which a profile may name (profile.go), and where they write.
// What describes a job: flags in describe.go, files in jobfile.go.
package remote

import (
	"github.com/spf13/cobra"
)

// Commands returns the commands of users of this version of the program.
func Commands(version string) []*cobra.Command {
	return []*cobra.Command{
		whoamiCommand(), logoutCommand(), openCommand(), algorithmCommand(),
		submitCommand(), runCommand(), batchCommand(), rerunCommand(), estimateCommand(),
		jobsCommand(), statusCommand(), waitCommand(), logsCommand(), eventsCommand(), topCommand(),
		resultsCommand(), tableCommand(), plotCommand(), shareCommand(),
		cancelCommand(), retryCommand(), removeCommand(), filesCommand(), mcpCommand(version),
	}
}
