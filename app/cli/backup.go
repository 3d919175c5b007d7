package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/config"
	"molrun/app/fault"
	"molrun/app/unit"
)

func backupCommand() *cobra.Command {
	var deep, asJSON bool
	c := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy all that is kept into a directory of backups",
		Long: `Copy the records, uploads, results, logs and the secret into a directory of
backups, each a folder of its own, while the service runs or while it does not.

A backup is whole and of one moment: what is deleted while it is made stays on the
disk until it is done. It appears under its name only when it is complete; one that
was cut short is gone on with by the next. Files that the backup before has too are
hard links to it, so that each costs only what is new; remove old ones as you like.
Keep DIR on another disk: it is as secret as the data directory.

Not in it: work directories, and what an attempt that runs just now is writing. The
configuration and your algorithm files lie elsewhere; copy them yourself.`,
		Example: `  molrun backup /mnt/backups/molrun
  sha256sum --check --quiet SHA256SUMS        # in a backup, without molrun`,
		Args: exactlyOne("the directory of backups"),
	}
	flags := addConfigFlags(c, false)
	c.Flags().BoolVar(&deep, "deep", false, "read again also what the backup before has, and compare")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		config, err := flags.load()
		if err != nil {
			return err
		}
		began := time.Now()
		record, err := backUp(c.Context(), config, args[0], deep)
		if err != nil {
			return err
		}
		tell(c, config.Data, "backup", record.Name)
		if asJSON {
			err = printJSON(c.OutOrStdout(), record)
		} else {
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %d jobs, %d uploads, %d files of %s (%s copied) in %s\n",
				filepath.Join(args[0], record.Name), record.Jobs, record.Uploads, record.Files,
				unit.Bytes(record.Bytes), unit.Bytes(record.Copied), time.Since(began).Round(10*time.Millisecond))
		}
		if err != nil || len(record.Problems) == 0 {
			return err
		}
		for _, p := range record.Problems {
			fmt.Fprintln(c.ErrOrStderr(), p)
		}
		return fmt.Errorf("the backup is complete but for %d problems that the data had before; see above and molrun check", len(record.Problems))
	}
	return c
}

// backUp makes a backup of the data directory into dir.
func backUp(ctx context.Context, config config.Config, dir string, deep bool) (record *backupRecord, err error) {
	if err := refuseWithin(dir, config.Data); err != nil {
		return nil, err
	}
	err = withView(ctx, config, func(ctx context.Context, v *view) (err error) {
		info, err := v.records.Info()
		if err != nil {
			return err
		}
		b, unlock, err := openBackups(dir, info.ID)
		if err != nil {
			return err
		}
		record, err = take(ctx, b, v, info, deep)
		if closeErr := unlock(); err == nil {
			err = closeErr
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("back up %s: %w", config.Data, err)
	}
	return record, nil
}

// refuseWithin refuses to put a backup where it would be part of the data.
func refuseWithin(dir, data string) error {
	dir, err := realPath(dir)
	if err != nil {
		return err
	}
	if data, err = realPath(data); err != nil {
		return err
	}
	if dir == data || strings.HasPrefix(dir, data+string(filepath.Separator)) {
		return fault.Errorf(fault.Invalid, "%s lies in the data directory; name another directory, best on another disk", dir)
	}
	return nil
}

// realPath follows links as far as the path exists.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest), nil
		}
		if dir == filepath.Dir(dir) {
			return path, nil
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
