package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/base/unit"
	"molrun/app/cli/remote"
	"molrun/app/client"
	"molrun/app/job/retention"
)

func storageCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "storage",
		Short: "Show storage use by organization, user, algorithm or age",
	}
	c.AddCommand(storageReportCommand())
	return c
}

// reportKinds are the values of --by.
var reportKinds = []string{string(retention.ByOrganization), string(retention.ByUser), string(retention.ByAlgorithm), string(retention.ByAge)}

func storageReportCommand() *cobra.Command {
	var by string
	var asJSON bool
	c := &cobra.Command{
		Use:   "report",
		Short: "Show storage use and free disk space",
		Long: `Show the number of jobs and uploads and the size of their results and files, by organization,
user, algorithm or age. Quotas use the same numbers. Logs and work directories of failed jobs
are not included.

Age counts from the day on which a job finished or a file was uploaded.`,
		Example: `  molrun storage report
  molrun storage report --by user
  molrun storage report --by age --json`,
		Args: cobra.NoArgs,
	}
	flags := addConfigFlags(c, false)
	c.Flags().StringVar(&by, "by", reportKinds[0], "group by "+strings.Join(reportKinds, ", "))
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, sizes in bytes")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if !slices.Contains(reportKinds, by) {
			return remote.Usagef("--by: use %s", strings.Join(reportKinds, ", "))
		}
		return operate(c, flags, func(ctx context.Context, control *client.Control) error {
			report, err := control.Storage(ctx, by)
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(c.OutOrStdout(), report)
			}
			return printReport(c.OutOrStdout(), report)
		})
	}
	return c
}

func printReport(w io.Writer, r *client.StorageReport) error {
	columns := reportColumns(r)
	heading := make([]string, len(columns))
	rows := make([][]string, len(r.Rows)+1)
	total := totalOf(r.Rows)
	for i, column := range columns {
		heading[i] = column.heading
		for k := range r.Rows {
			rows[k] = append(rows[k], column.text(&r.Rows[k]))
		}
		text := column.text(&total)
		if i == 0 {
			text = "all"
		}
		rows[len(r.Rows)] = append(rows[len(r.Rows)], text)
	}
	if err := printTable(w, heading, rows); err != nil {
		return err
	}
	state := ""
	switch {
	case r.Disk.Free < r.Disk.Reserve:
		state = "; until more is free, no uploads are accepted and no jobs start"
	case r.Disk.Files > 0 && r.Disk.FreeFiles < r.Disk.ReserveFiles:
		state = fmt.Sprintf("; only %d more files (inodes) can be created: until it is %d, no uploads are accepted and no jobs start", r.Disk.FreeFiles, r.Disk.ReserveFiles)
	}
	_, err := fmt.Fprintf(w, "\ndisk: %s free of %s, %s must stay free%s\n",
		unit.Bytes(r.Disk.Free), unit.Bytes(r.Disk.Size), unit.Bytes(r.Disk.Reserve), state)
	return err
}

// reportColumn is a column of the table.
type reportColumn struct {
	heading string
	text    func(*client.StorageRow) string
}

func reportColumns(r *client.StorageReport) []reportColumn {
	var columns []reportColumn
	switch retention.ReportBy(r.By) {
	case retention.ByUser:
		columns = []reportColumn{
			{"ORGANIZATION", func(row *client.StorageRow) string { return row.Organization }},
			{"USER", func(row *client.StorageRow) string { return row.User }},
		}
	case retention.ByAlgorithm:
		columns = []reportColumn{{"ALGORITHM", func(row *client.StorageRow) string {
			if row.Algorithm == "" {
				return "(uploads)"
			}
			return row.Algorithm
		}}}
	case retention.ByAge:
		columns = []reportColumn{{"AGE", func(row *client.StorageRow) string { return row.Age }}}
	default:
		columns = []reportColumn{{"ORGANIZATION", func(row *client.StorageRow) string { return row.Organization }}}
	}
	columns = append(columns, []reportColumn{
		{"JOBS", func(row *client.StorageRow) string { return fmt.Sprint(row.Jobs) }},
		{"QUEUED", func(row *client.StorageRow) string { return fmt.Sprint(row.Queued) }},
		{"RESULTS", func(row *client.StorageRow) string { return unit.Bytes(row.ResultBytes).String() }},
		{"UPLOADS", func(row *client.StorageRow) string { return fmt.Sprint(row.Files) }},
		{"THEIR SIZE", func(row *client.StorageRow) string { return unit.Bytes(row.UploadBytes).String() }},
		{"IN ALL", func(row *client.StorageRow) string { return unit.Bytes(row.ResultBytes + row.UploadBytes).String() }},
	}...)
	if slices.ContainsFunc(r.Rows, func(row client.StorageRow) bool { return row.QuotaBytes > 0 }) {
		columns = append(columns, reportColumn{"OF QUOTA", quotaText})
	}
	return columns
}

func quotaText(row *client.StorageRow) string {
	if row.QuotaBytes == 0 {
		return ""
	}
	share := 100 * float64(row.ResultBytes+row.UploadBytes) / float64(row.QuotaBytes)
	return fmt.Sprintf("%.0f %% of %s", share, unit.Bytes(row.QuotaBytes))
}

func totalOf(rows []client.StorageRow) (total client.StorageRow) {
	for _, row := range rows {
		total.Jobs += row.Jobs
		total.Queued += row.Queued
		total.Files += row.Files
		total.ResultBytes += row.ResultBytes
		total.UploadBytes += row.UploadBytes
	}
	return total
}
