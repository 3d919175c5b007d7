package remote

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"molrun/web/agent"
)

func mcpCommand(version string) *cobra.Command {
	c := &cobra.Command{
		Use: "mcp", Short: "Give an AI assistant access to the service (Model Context Protocol)", Args: cobra.NoArgs,
		Long: `Serve the Model Context Protocol on standard input and output, for AI assistants that use
tools. The assistant acts with your key and has your rights. The service offers the same over
HTTP at /mcp, with the key in x-api-key.`,
		Example: Examples("molrun mcp </dev/null", "molrun mcp --profile default </dev/null"),
	}
	return withSession(c, func(ctx context.Context, s *session, _ []string) error {
		m, err := agent.New(ctx, s.API, version)
		if err != nil {
			return err
		}
		if err := m.Run(ctx, &mcp.StdioTransport{}); err != nil && ctx.Err() == nil {
			return err
		}
		return nil
	})
}
