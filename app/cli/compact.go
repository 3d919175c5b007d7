package cli

import (
	"fmt"
	"path/filepath"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"molrun/app/base/unit"
	"molrun/app/server/host"
	"molrun/storage"
)

func compactCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "compact",
		Short: "Shrink the database after deletions",
		Long: `Rewrite the database without the space that deletions left. Stop the service first. The old
file is replaced only after the new one has been written and verified, so the disk needs
space for both.`,
		Example: "  molrun compact --data /srv/molrun",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := flags.existing(c)
		if err != nil {
			return err
		}
		path := filepath.Join(config.Data, host.Database)
		if err := expectDatabaseAt(path); err != nil {
			return err
		}
		sizes, err := storage.Compact(c.Context(), path, host.StorageOptions(config, zerolog.Nop()))
		if err != nil {
			return err
		}
		recordAct(c, config.Data, "compact", "")
		if asJSON {
			return printJSON(c.OutOrStdout(), sizes)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s before, %s after\n", path, unit.Bytes(sizes.Before), unit.Bytes(sizes.After))
		return err
	}
	return c
}

// expectDatabaseAt returns an error if there is no database at path, where the command
// would otherwise create one.
func expectDatabaseAt(path string) error {
	records, err := storage.OpenReadOnly(path)
	if err != nil {
		return err
	}
	return records.Close()
}
