package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/base/unit"
	"molrun/app/cli/remote"
	"molrun/app/client"
	"molrun/app/job/usage"
)

// usageKinds are the values of --by.
var usageKinds = []string{string(usage.ByOrganization), string(usage.ByUser), string(usage.ByType), string(usage.ByDay)}

func usageCommand() *cobra.Command {
	var by, organization, since, until string
	var asJSON, asCSV bool
	c := &cobra.Command{
		Use:   "usage",
		Short: "Show usage: jobs, CPU and GPU time, bytes",
		Long: `Show the resources that jobs used and the files that were uploaded, by organization, user,
type or day. Everything counts on the day (UTC) on which it finished, also after deletion.
Users see their own usage with GET /usage, where the columns are explained.

Without --since and --until, show the last 30 days; a report covers up to 400 days.`,
		Example: `  molrun usage
  molrun usage --by user --organization lab --since 2026-11-01 --until 2026-12-01
  molrun usage --by day --csv > days.csv`,
		Args: cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	f := c.Flags()
	f.StringVar(&by, "by", usageKinds[0], "group by "+strings.Join(usageKinds, ", "))
	f.StringVar(&organization, "organization", "", "only this organization")
	f.StringVar(&since, "since", "", "first day, such as 2026-11-01")
	f.StringVar(&until, "until", "", "day after the last (exclusive)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVar(&asCSV, "csv", false, "print CSV")
	c.MarkFlagsMutuallyExclusive("json", "csv")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if !slices.Contains(usageKinds, by) {
			return remote.Usagef("--by: use %s", strings.Join(usageKinds, ", "))
		}
		query := url.Values{"by": {by}}
		for name, value := range map[string]string{"organization": organization, "since": since, "until": until} {
			if value != "" {
				query.Set(name, value)
			}
		}
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			if asCSV {
				return control.UsageCSV(ctx, query, c.OutOrStdout())
			}
			report, err := control.Usage(ctx, query)
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(c.OutOrStdout(), report)
			}
			return printUsage(c.OutOrStdout(), report)
		})
	}
	return c
}

func printUsage(w io.Writer, r *client.UsageReport) error {
	names := map[string][]string{
		"organization": {"ORGANIZATION"}, "user": {"ORGANIZATION", "USER"}, "type": {"TYPE"}, "day": {"DAY"},
	}[r.By]
	heading := append(names, "COMPLETED", "FAILED", "ATTEMPTS", "RUN HOURS", "CPU HOURS", "BOOKED", "GPU HOURS", "RESULTS", "UPLOADS", "THEIR SIZE")
	rows := make([][]string, 0, len(r.Rows)+1)
	for _, row := range r.Rows {
		rows = append(rows, append(namesOf(r.By, row), usageCells(row)...))
	}
	total := append([]string{"all"}, make([]string, len(names)-1)...)
	rows = append(rows, append(total, usageCells(r.Total)...))
	if err := printTable(w, heading, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s to %s, days in UTC\n", r.Since, r.Until)
	return err
}

// namesOf returns the cells that identify a row of the report.
func namesOf(by string, row client.UsageRow) []string {
	switch usage.By(by) {
	case usage.ByUser:
		return []string{row.Organization, row.User}
	case usage.ByType:
		if row.Type == "" {
			return []string{"(uploads)"}
		}
		return []string{row.Type}
	case usage.ByDay:
		return []string{row.Day}
	}
	return []string{row.Organization}
}

func usageCells(row client.UsageRow) []string {
	hours := func(seconds float64) string { return fmt.Sprintf("%.2f", seconds/3600) }
	return []string{
		fmt.Sprint(row.Completed), fmt.Sprint(row.Failed), fmt.Sprint(row.Attempts),
		hours(row.RunSeconds), hours(row.CPUSeconds), hours(row.CPUSecondsBooked), hours(row.GPUSeconds),
		unit.Bytes(row.ResultBytes).String(), fmt.Sprint(row.Uploads), unit.Bytes(row.UploadBytes).String(),
	}
}
