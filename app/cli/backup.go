package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
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

Each file is compared with the copy that the previous backup has: by presence, size
and time, and by content if the time differs or with --deep. If one is missing or
altered, the backup has the earlier copy and the command says so.

A backup does not contain work directories, nor what running attempts are writing.
Copy the configuration and your algorithm files yourself; they are elsewhere.

Exits with 0 if the backup and the data directory are whole, with 10 if only the
backup is, and with 1 if the backup lacks something or was not made.`,
		Example: `  molrun backup /mnt/backups/molrun
  sha256sum --check --quiet SHA256SUMS        # in a backup, without molrun`,
		Args: exactlyOne("the directory of backups"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&deep, "deep", false, "read all files and those of the previous backup, and compare them")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		config, err := flags.existing(c)
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
		if err != nil {
			return err
		}
		return backupProblems(c.ErrOrStderr(), taken)
	}
	return c
}

// backupProblems prints what is wrong with a backup or the data, and says what
// follows from it.
func backupProblems(w io.Writer, taken *backup.Record) error {
	for _, p := range slices.Concat(taken.Problems, taken.Damaged) {
		fmt.Fprintln(w, p)
	}
	switch {
	case len(taken.Problems) > 0:
		return fmt.Errorf("the backup is complete except for %d problems that the data already had; see above and molrun check", len(taken.Problems))
	case len(taken.Damaged) > 0:
		return damagedError(fmt.Sprintf("the backup is complete, but %d files of the data directory are missing or altered, of which it has the copies "+
			"of an earlier backup; see above and molrun check --deep, and copy them back or restore this backup", len(taken.Damaged)))
	}
	return nil
}

// damagedError says that a backup is whole and the data directory is not.
type damagedError string

func (e damagedError) Error() string { return string(e) }
