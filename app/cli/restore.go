package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/base/unit"
	"molrun/app/cli/remote"
	"molrun/app/server"
	"molrun/app/server/backup"
	"molrun/app/server/config"
)

func restoreCommand() *cobra.Command {
	var r backup.Restore
	var asJSON, list, try bool
	c := &cobra.Command{
		Use:   "restore DIR",
		Short: "Restore a backup into a new data directory",
		Long: `Restore the newest backup in DIR, or the one that --snapshot names, into a data directory that
is empty or does not exist. Every file is verified against its digest, and the whole directory
at the end. After an interrupted restore the service refuses to start on the directory; run
the same command again.

With --try, the backup is restored inside DIR, verified and removed again; uploads and results
are read but take no space.

Attempts that were running when the backup was made are lost: their jobs are queued again if
their algorithm has retries left, and otherwise FAILED, for their users to retry.`,
		Example: `  molrun restore /mnt/backups/molrun --data /srv/molrun
  molrun restore /mnt/backups/molrun --list
  molrun restore /mnt/backups/molrun --try`,
		Args: exactlyOne("the directory of backups"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&r.Name, "snapshot", "", "name of a backup in DIR (default the newest)")
	c.Flags().BoolVar(&r.SkipDamaged, "skip-damaged", false, "skip damaged files instead of failing")
	c.Flags().BoolVar(&list, "list", false, "list the backups in DIR")
	c.Flags().BoolVar(&try, "try", false, "test whether the backup can be restored, without keeping the result")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		r.Dir = backup.Dir(args[0])
		if list {
			return listBackups(c, r.Dir, asJSON)
		}
		config, err := flags.loadConfig()
		if err != nil {
			return err
		}
		if try {
			return tryBackup(c, config, r, asJSON)
		}
		nameData(c, config)
		r.Config, r.FinishLost = config, server.FinishLost
		began := time.Now()
		restored, err := r.Restore(c.Context())
		if err != nil {
			return fmt.Errorf("restore %s: %w", config.Data, err)
		}
		recordAct(c, config.Data, "restore", restored.Backup)
		if asJSON {
			err = printJSON(c.OutOrStdout(), restored)
		} else {
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s is backup %s of %s: %d files of %s in %s; of the jobs running then, %d are queued again and %d failed\n",
				config.Data, restored.Backup, restored.TakenAt.Local().Format(time.DateTime), restored.Files, unit.Bytes(restored.Bytes),
				time.Since(began).Round(10*time.Millisecond), restored.Requeued, restored.Lost)
		}
		for _, p := range restored.Problems {
			fmt.Fprintln(c.ErrOrStderr(), p)
		}
		if err == nil && len(restored.Problems) > 0 {
			err = fmt.Errorf("restored, with %d problems; see above", len(restored.Problems))
		}
		return err
	}
	return c
}

// tryBackup test-restores a backup.
func tryBackup(c *cobra.Command, config config.Config, r backup.Restore, asJSON bool) error {
	if r.SkipDamaged {
		return remote.Usagef("--try finds damaged files; omit --skip-damaged")
	}
	began := time.Now()
	tried, err := r.Dir.TestRestore(c.Context(), config, r.Name, server.FinishLost)
	if err != nil {
		return fmt.Errorf("test restore: %w", err)
	}
	for _, p := range tried.Problems {
		fmt.Fprintln(c.ErrOrStderr(), p)
	}
	switch {
	case asJSON:
		err = printJSON(c.OutOrStdout(), tried)
	case len(tried.Problems) == 0:
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s can be restored: %d files of %s in %s\n",
			tried.Backup, tried.Files, unit.Bytes(tried.Bytes), time.Since(began).Round(10*time.Millisecond))
	}
	if err == nil && len(tried.Problems) > 0 {
		err = fmt.Errorf("%s can't be restored completely: %d problems; see above", tried.Backup, len(tried.Problems))
	}
	return err
}

// listBackups lists the backups that can be restored.
func listBackups(c *cobra.Command, dir backup.Dir, asJSON bool) error {
	names, err := dir.Names()
	if err != nil {
		return err
	}
	records := []*backup.Record{}
	var rows [][]string
	for _, name := range names {
		record, err := dir.Record(name)
		if err != nil {
			fmt.Fprintln(c.ErrOrStderr(), err)
			continue
		}
		record.Name = name
		records = append(records, record)
		rows = append(rows, []string{
			name, record.TakenAt.Local().Format(time.DateTime), fmt.Sprint(record.Jobs), fmt.Sprint(record.Uploads),
			unit.Bytes(record.Bytes).String(), unit.Bytes(record.Copied).String(), fmt.Sprint(len(record.Problems)),
		})
	}
	if asJSON {
		return printJSON(c.OutOrStdout(), records)
	}
	return printTable(c.OutOrStdout(), []string{"BACKUP", "TAKEN", "JOBS", "UPLOADS", "SIZE", "NEW", "PROBLEMS"}, rows)
}
