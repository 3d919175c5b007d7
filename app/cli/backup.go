package cli

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/backup"
	"molrun/app/unit"
)

func backupCommand() *cobra.Command {
	var deep, asJSON bool
	c := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy all that is kept into a directory of backups",
		Long: `Copy the records, uploads, results, logs and the secret into a directory of
backups, each a folder of its own, while the service runs or while it does not.

A backup is complete and of one moment: files deleted while it is made stay on the
disk until it is done. It gets its name only when it is complete; the next backup
continues an interrupted one. Files that the previous backup has too are hard links
to it, so that each costs only what is new; remove old ones as you like. Keep DIR on
another disk: it is as secret as the data directory.

A backup does not contain work directories, nor what running attempts are writing.
Copy the configuration and your algorithm files yourself; they are elsewhere.`,
		Example: `  molrun backup /mnt/backups/molrun
  sha256sum --check --quiet SHA256SUMS        # in a backup, without molrun`,
		Args: exactlyOne("the directory of backups"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&deep, "deep", false, "read files of the previous backup again and compare them")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		config, err := flags.load()
		if err != nil {
			return err
		}
		began := time.Now()
		taken, err := backup.Take(c.Context(), config, backup.Options{Dir: backup.Dir(args[0]), Deep: deep, Program: versionText()})
		if err != nil {
			return err
		}
		recordAct(c, config.Data, "backup", taken.Name)
		if asJSON {
			err = printJSON(c.OutOrStdout(), taken)
		} else {
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d jobs, %d uploads, %d files of %s (%s copied) in %s\n",
				filepath.Join(args[0], taken.Name), taken.Jobs, taken.Uploads, taken.Files,
				unit.Bytes(taken.Bytes), unit.Bytes(taken.Copied), time.Since(began).Round(10*time.Millisecond))
		}
		if err != nil || len(taken.Problems) == 0 {
			return err
		}
		for _, p := range taken.Problems {
			fmt.Fprintln(c.ErrOrStderr(), p)
		}
		return fmt.Errorf("the backup is complete except for %d problems that the data already had; see above and molrun check", len(taken.Problems))
	}
	return c
}
