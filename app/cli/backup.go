package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/base/fault"
	"molrun/app/base/unit"
	"molrun/app/cli/remote"
	"molrun/app/server/backup"
	"molrun/app/server/config"
)

func backupCommand() *cobra.Command {
	var deep, asJSON, marked bool
	var rule string
	c := &cobra.Command{
		Use:   "backup [DIR]",
		Short: "Back up the data directory",
		Long: `Back up records, uploads, results, logs and the signing key to a new folder in DIR, whether
or not the service is running.

A backup is consistent: files deleted meanwhile stay on the disk until it is done. It gets
its name only when it is complete; the next backup continues an interrupted one. Files that
are also in the previous backup are hard links, so each backup takes only the space of what
is new, and old ones can be deleted at any time. Keep DIR on another disk, as confidential
as the data directory. Without DIR, backups go to the setting backup.to, as scheduled ones do.

Each file is compared with its copy in the previous backup: by presence, size and time, and
by content if the time differs or with --deep. If a file is missing or altered, the backup
keeps the earlier copy and the command says so.

With --keep, older backups are deleted after one without problems: 7d,4w,6m keeps the last
of each of 7 days, 4 weeks and 6 months that have one; h and y stand for hours and years.
The newest one is kept, and the newest without problems.

A backup does not contain work directories or files that running attempts are writing. Copy
the configuration and your algorithm files yourself.

Exits with 0 if the backup and the data directory are intact, 10 if only the backup is, and
1 if the backup is incomplete or failed.`,
		Example: `  molrun backup /mnt/backups/molrun
  molrun backup /mnt/backups/molrun --keep 7d,4w,6m
  sha256sum --check --quiet SHA256SUMS        # in a backup, without molrun`,
		Args: cobra.MaximumNArgs(1),
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&rule, "keep", "", "backups to keep, such as 7d,4w,6m (default all)")
	c.Flags().BoolVar(&marked, "marked", false, "fail unless the directory already has backups (guards against an unmounted disk)")
	c.Flags().BoolVar(&deep, "deep", false, "compare the content of all files with the previous backup")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		config, err := flags.existing(c)
		if err != nil {
			return err
		}
		options := backup.Options{Deep: deep, Program: version, Pruned: func(names []string) {
			fmt.Fprintf(c.ErrOrStderr(), "deleted by --keep: %s\n", strings.Join(names, ", "))
		}}
		if options.Dir, err = backupDir(c, config, args, marked); err != nil {
			return err
		}
		if err := options.Keep.UnmarshalText([]byte(rule)); err != nil {
			return remote.Usage(err)
		}
		began := time.Now()
		taken, err := backup.TakeBackup(c.Context(), config, options)
		if err != nil {
			return err
		}
		recordAct(c, config.Data, "backup", taken.Name)
		if asJSON {
			err = printJSON(c.OutOrStdout(), taken)
		} else {
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d jobs, %d uploads, %d files of %s (%s copied) in %s\n",
				filepath.Join(string(options.Dir), taken.Name), taken.Jobs, taken.Uploads, taken.Files,
				unit.Bytes(taken.Bytes), unit.Bytes(taken.Copied), time.Since(began).Round(10*time.Millisecond))
		}
		if err != nil {
			return err
		}
		return backupProblems(c.ErrOrStderr(), taken)
	}
	return c
}

// backupDir returns the backup directory. If the directory has no backups, it might be
// the wrong one, so backupDir prints a note or, if marked is set, returns an error.
func backupDir(c *cobra.Command, config config.Config, args []string, marked bool) (backup.Dir, error) {
	dir := backup.Dir(config.Backup.To)
	if len(args) > 0 {
		dir = backup.Dir(args[0])
	}
	if dir == "" {
		return "", remote.Usagef("specify the backup directory, or set backup.to")
	}
	has, err := dir.Marked()
	switch {
	case err != nil || has:
		return dir, err
	case marked:
		return "", fault.Errorf(fault.Invalid, "%s has no backups; mount its disk, or run molrun backup %[1]s once without --marked", dir)
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s has no backups yet; making a first, full backup\n", dir)
	return dir, nil
}

// backupProblems prints the problems of a backup or of the data, and returns an error
// that explains their consequences.
func backupProblems(w io.Writer, taken *backup.Record) error {
	for _, p := range slices.Concat(taken.Problems, taken.Damaged) {
		fmt.Fprintln(w, p)
	}
	switch {
	case len(taken.Problems) > 0:
		return fmt.Errorf("the backup was made, but the data itself has %d problems, and so does the backup; see above and run molrun check", len(taken.Problems))
	case len(taken.Damaged) > 0:
		return damagedError(fmt.Sprintf("the backup is complete, but %d files in the data directory are missing or altered; the backup contains their copies "+
			"from an earlier backup. See above and run molrun check --deep, then copy them back or restore this backup", len(taken.Damaged)))
	}
	return nil
}

// damagedError reports that the backup is complete but the data directory is damaged.
type damagedError string

func (e damagedError) Error() string { return string(e) }
