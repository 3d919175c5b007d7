package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/base/durable"
	"molrun/app/base/fault"
	"molrun/app/cli/doctor"
	"molrun/app/client"
	"molrun/app/server"
)

func doctorCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Diagnose the installation",
		Long: `Check the configuration, the data directory, the database, the machine and the programs that
jobs need, and say how to fix each problem. Works whether or not the service is running, and
changes nothing; on a cluster it runs a job that ends immediately. To verify records and files,
use molrun check.

Exits with 1 if there is a problem; warnings do not count.`,
		Example: "  molrun doctor\n  molrun doctor --json",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, true)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var findings []doctor.Finding
		config, err := flags.loadConfig()
		if err != nil {
			findings = []doctor.Finding{{Check: "configuration", Result: doctor.Problem, Text: fault.Text(err)}}
		} else {
			nameData(c, config)
			findings = doctor.Examine(c.Context(), config)
		}
		if asJSON {
			err = printJSON(c.OutOrStdout(), findings)
		} else {
			err = printFindings(c, findings)
		}
		if err != nil {
			return err
		}
		for _, f := range findings {
			if f.Result == doctor.Problem {
				return silent{exitFailed}
			}
		}
		return nil
	}
	return c
}

func printFindings(c *cobra.Command, findings []doctor.Finding) error {
	rows := make([][]string, len(findings))
	for i, f := range findings {
		rows[i] = []string{string(f.Result), f.Check, f.Text}
	}
	return printTable(c.OutOrStdout(), []string{"RESULT", "CHECK", "STATE, WHAT TO DO"}, rows)
}

func reportCommand() *cobra.Command {
	var o doctor.ReportOptions
	var output string
	c := &cobra.Command{
		Use:   "report",
		Short: "Collect diagnostics for a bug report, without secrets",
		Long: `Write a text file for a bug report: versions, settings that differ from the defaults, the
results of molrun doctor, numbers of jobs and users, readiness, metrics and the last errors of the
service's log. Keys, tokens, passwords, e-mail addresses, and names of users, organizations,
jobs, files, hosts and home directories are left out, and so are values of settings that
could hold them. Read it before you send it.

The log is read from the unit molrun.service in the systemd journal, or from --log.`,
		Example: "  molrun report --data /srv/molrun\n  molrun report --log service.log --output -",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&o.LogFile, "log", "", "log file of the service (default: the systemd journal)")
	c.Flags().StringVar(&output, "output", "", "file to write, or - (default molrun-report-TIME.txt)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := flags.existing(c)
		if err != nil {
			return err
		}
		o.Version = version
		o.Counts = func(ctx context.Context) (storage *client.StorageReport, users []client.User, err error) {
			err = server.WithControl(ctx, config, func(ctx context.Context, control *client.Control) (err error) {
				if storage, err = control.Storage(ctx, "organization"); err == nil {
					users, err = control.Users(ctx)
				}
				return err
			})
			return storage, users, err
		}
		var text bytes.Buffer
		if err := doctor.WriteReport(c.Context(), &text, config, o); err != nil {
			return err
		}
		if output == "-" {
			_, err = c.OutOrStdout().Write(text.Bytes())
			return err
		}
		if output == "" {
			output = "molrun-report-" + time.Now().UTC().Format("20060102T150405Z") + ".txt"
		}
		return writeReport(c, output, text.Bytes())
	}
	return c
}

func writeReport(c *cobra.Command, file string, text []byte) error {
	dir, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := durable.Replace(dir, filepath.Base(file), text); err != nil {
		return err
	}
	fmt.Fprintln(c.ErrOrStderr(), "read it before you send it:")
	_, err = fmt.Fprintln(c.OutOrStdout(), file)
	return err
}
