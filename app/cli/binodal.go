package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"molrun/app/cli/remote"
	"molrun/app/engine/binodal"
)

func binodalCommand() *cobra.Command {
	var settings, out string
	var points []string
	c := &cobra.Command{
		Use:   "cg-binodal",
		Short: "Build a phase diagram from results of cg-condensate",
		Long: `Build a phase diagram from results of cg-condensate at different temperatures or ionic
strengths. Over temperature, extrapolate to the critical point. The settings name the points
as references, in the order of --point.`,
		Example: `  echo '{"points":["job:a/@summary","job:b/@summary","job:c/@summary"]}' > binodal.json
  molrun engine cg-binodal --settings binodal.json --point a/summary.json --point b/summary.json --point c/summary.json --out binodal`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&settings, "settings", "", "JSON file with the settings")
	c.Flags().StringArrayVar(&points, "point", nil, "summary.json of a result; repeat for each")
	c.Flags().StringVar(&out, "out", "", "folder for the results")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if settings == "" || out == "" || len(points) == 0 {
			return remote.Usagef("specify --settings FILE, --point FILE for each point, and --out DIR")
		}
		text, err := os.ReadFile(settings)
		if err != nil {
			return fmt.Errorf("read settings: %w", err)
		}
		s, faults := binodal.Parse(text)
		for _, fault := range faults {
			fmt.Fprintf(c.ErrOrStderr(), "%v: %s\n", fault.Loc, fault.Msg)
		}
		if len(faults) > 0 {
			return silent{exitInvalid}
		}
		s.Molrun = version
		return binodal.Run(c.Context(), s, points, out, c.OutOrStdout())
	}
	return c
}
