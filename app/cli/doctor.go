package cli

import (
	"github.com/spf13/cobra"

	"molrun/app/doctor"
	"molrun/app/fault"
)

func doctorCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with this installation",
		Long: `Look at the configuration, the data directory, the database, the machine and the
programs that jobs need, while the service runs or while it does not, and say what to
do about what is wrong. It changes nothing; on a cluster it runs a job that ends at
once. Whether records and files are sound is a question for molrun check.

Exits with 1 if there is a problem; warnings do not count.`,
		Example: "  molrun doctor\n  molrun doctor --json",
		Args:    cobra.NoArgs,
	}
	flags := addConfigFlags(c, true)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var findings []doctor.Finding
		config, err := flags.load()
		if err != nil {
			findings = []doctor.Finding{{Check: "configuration", Result: doctor.Problem, Text: fault.Text(err)}}
		} else {
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
	return printTable(c.OutOrStdout(), []string{"RESULT", "CHECK", "WHAT IT IS, WHAT TO DO"}, rows)
}
