package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/unit"
	"molrun/web/client"
)

func keyRotateCommand() *cobra.Command {
	overlap := unit.Duration(24 * time.Hour)
	var overlapText string
	var asJSON bool
	c := &cobra.Command{
		Use:   "rotate ID",
		Short: "Make a key in place of another, which closes after a while",
		Long: `Make a key for the user of another one and print it, once. The old key goes on
working for the time of --overlap, so that programs can change to the new one.`,
		Example: `  molrun key rotate acatwwcwiblh
  molrun key rotate acatwwcwiblh --overlap 7d
  molrun key rotate acatwwcwiblh --overlap 0s      # close the old one at once`,
		Args: exactlyOne("the ID of a key; `molrun key list` shows them"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&overlapText, "overlap", "24h", "how long the old key goes on working")
	c.Flags().BoolVar(&asJSON, "json", false, "print the new key's record, with the key in it, as JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := overlap.UnmarshalText([]byte(overlapText)); err != nil || overlap < 0 {
			return usageError{fmt.Errorf("--overlap: %q is no time; write 0s, 24h or 7d", overlapText)}
		}
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			key, err := control.RotateKey(ctx, args[0], time.Duration(overlap))
			if err != nil {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "key %s closes in %s\n", args[0], time.Duration(overlap))
			if asJSON {
				return printJSON(c.OutOrStdout(), key)
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), key.Secret)
			return err
		})
	}
	return c
}
