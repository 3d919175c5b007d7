package remote

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/base/fasta"
	"molrun/app/base/plaintext"
	"molrun/app/base/tables"
	"molrun/app/client"
)

func batchCommand() *cobra.Command {
	var d description
	var a submitFlags
	var each []string
	c := &cobra.Command{
		Use: "batch [TYPE]", Short: "Submit many jobs at once", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeTypes,
		Long: `Submit many jobs of one algorithm: one for each row of a table (.csv, .tsv or .xlsx, with
settings as columns), each sequence of a FASTA file, or each file in a folder. --set and
--file give settings that all jobs share. --each names the setting that takes the sequences
or files; it is needed only if several settings could. In a table, the column of --each holds
paths of local files, which are uploaded.

A .toml, .yaml or .json file holds a list of jobs, which can be of different types and read
each other's results, as job:NAME/@OUTPUT or job:NAME/path.`,
		Example: Examples(
			"molrun batch sequence-properties -i proteins.fasta --wait",
			"molrun batch cg-idp -i conditions.csv --file fasta=hst5.fasta --name conditions",
			"molrun batch structure-summary -i models/ --each structure --wait",
			"molrun batch -i binodal.yaml --wait"),
	}
	d.addFlags(c, "batch")
	a.addFlags(c)
	c.Flags().StringArrayVar(&each, "each", nil, "setting for the sequence or file of each job")
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		if d.input == "" {
			return Usagef("specify the source of the jobs, as in %s TYPE -i rows.csv", c.CommandPath())
		}
		if describesJobs(d.input) {
			body, err := d.pipeline(ctx, s, c, args, each)
			if err != nil {
				return err
			}
			return a.submit(ctx, s, "submit-batch", body)
		}
		rows := d.input
		d.input = ""
		j, err := d.job(ctx, s, c, args)
		if err != nil {
			return err
		}
		common, err := prepareSettings(ctx, s, &j, d.folder)
		if err != nil {
			return err
		}
		b := batch{common: common}
		b.Name, b.Type, b.Version, b.Terms = j.Name, j.Type, j.Version, j.Terms
		if err := b.fan(ctx, s, rows, each, d.folder); err != nil {
			return err
		}
		return a.submit(ctx, s, "submit-batch", b.BatchSubmission)
	})
}

// batch is a batch under construction.
type batch struct {
	client.BatchSubmission
	common map[string]any // settings shared by all jobs
}

// fan adds the jobs, or the source that the service creates them from.
func (b *batch) fan(ctx context.Context, s *session, rows string, each []string, folder string) error {
	info, err := os.Stat(rows)
	if err != nil {
		return Usage(err)
	}
	if info.IsDir() {
		return b.fanFolder(ctx, s, rows, each, folder)
	}
	format, err := formatOf(rows)
	switch {
	case err != nil:
		return err
	case format != "":
		return b.fanTable(ctx, s, rows, format, each, folder)
	}
	setting, err := b.settingFor(ctx, s, each, "sequences")
	if err != nil {
		return err
	}
	return b.sendRows(ctx, s, setting, "fasta", rows, folder)
}

// formatOf returns the service's name for a table format, or "" if the file is not a
// table. Excel saves tab-separated tables as .txt.
func formatOf(path string) (string, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv", ".xlsx", ".xlsm", ".xls", ".ods", ".numbers": // the service explains how to convert the last ones
		return "csv", nil
	case ".tsv", ".tab":
		return "tsv", nil
	case ".txt":
	default:
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() // read-only
	head, err := io.ReadAll(io.LimitReader(plaintext.NewReader(f), 4<<10))
	first, _, _ := strings.Cut(strings.TrimSpace(string(head)), "\n")
	if strings.Contains(first, "\t") && fasta.KindOf(first) == fasta.Letters {
		return "csv", err
	}
	return "", err
}

// sendRows uploads the file from which the service creates the jobs.
func (b *batch) sendRows(ctx context.Context, s *session, setting, format, path, folder string) error {
	sent, err := s.SendFiles(ctx, []string{path}, folder)
	if err == nil {
		b.FanOut = &client.FanOut{Each: map[string]string{setting: format + ":" + sent[0].ID}, Settings: encoded(b.common)}
	}
	return err
}

// settingFor returns the setting to assign the things (files or sequences) to: the one
// named by --each, or the algorithm's only unset setting that accepts them.
func (b *batch) settingFor(ctx context.Context, s *session, each []string, things string) (string, error) {
	if len(each) == 1 {
		return each[0], nil
	}
	if len(each) > 1 {
		return "", Usagef("use --each only once: the %s can be assigned to only one setting", things)
	}
	answer, err := s.API.Get(ctx, nil, "algorithms", b.Type)
	if err != nil {
		return "", err
	}
	a, err := client.Decode[client.Algorithm](answer)
	if err != nil {
		return "", err
	}
	var fits []string
	for _, p := range a.Parameters {
		_, given := b.common[p.Name]
		if takes := len(p.File) > 0; !given && takes == (things == "files") && (takes || strings.HasPrefix(p.Name, "sequence")) {
			fits = append(fits, p.Name)
		}
	}
	if len(fits) == 1 {
		return fits[0], nil
	}
	return "", Usagef("specify the setting that the %s are for, as in --each %s", things, cmp.Or(strings.Join(fits, " or --each "), "ligand"))
}

// fanFolder uploads the files of a local folder and creates one job for each.
func (b *batch) fanFolder(ctx context.Context, s *session, dir string, each []string, folder string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var paths []string
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		return Usagef("%s has no files; use a folder with one file for each job", dir)
	}
	setting, err := b.settingFor(ctx, s, each, "files")
	if err != nil {
		return err
	}
	sent, err := s.SendFiles(ctx, paths, cmp.Or(folder, "inputs/"+b.Name))
	if err != nil {
		return err
	}
	rows := make([]map[string]any, len(paths))
	for i, path := range paths {
		rows[i] = map[string]any{setting: sent[i].Reference(path)}
	}
	b.addRows(rows, stems(paths))
	return nil
}

// addRows adds a job for each row of settings, merged with the common settings.
func (b *batch) addRows(rows []map[string]any, names []string) {
	for i, row := range rows {
		for name, value := range b.common {
			if _, given := row[name]; !given {
				row[name] = value
			}
		}
		b.Settings = append(b.Settings, encoded(row))
		full := b.Name + "-" + names[i]
		if names[i] == "" || slices.Contains(b.Names, full) {
			full = fmt.Sprintf("%s-%d", b.Name, i+1)
		}
		b.Names = append(b.Names, full)
	}
}

// stems returns the names of files without extensions, reduced to the characters allowed
// in job names.
func stems(paths []string) []string {
	names := make([]string, len(paths))
	for i, path := range paths {
		base := filepath.Base(path)
		names[i] = strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
				return r
			}
			return '-'
		}, strings.TrimSuffix(base, filepath.Ext(base)))
	}
	return names
}

// fanTable uploads a table whose columns are settings. In the columns that each names,
// paths of local files are replaced with references to the uploads.
func (b *batch) fanTable(ctx context.Context, s *session, path, format string, each []string, folder string) error {
	if len(each) == 0 {
		return b.sendRows(ctx, s, "*", format, path, folder)
	}
	t, err := readTable(path, format)
	if err != nil {
		return Usage(err)
	}
	for _, column := range each {
		i := slices.Index(t.Columns, column)
		if i < 0 {
			return Usagef("%s has no column %q; it has %s", path, column, strings.Join(t.Columns, ", "))
		}
		if err := sendColumn(ctx, s, t.Rows, i, filepath.Dir(path), cmp.Or(folder, "inputs/"+b.Name)); err != nil {
			return err
		}
	}
	return b.sendTable(ctx, s, t, filepath.Base(path), folder)
}

func readTable(path, format string) (*tables.Sheet, error) {
	text, err := readText(path, "")
	if err != nil {
		return nil, err
	}
	t := tables.ReadSheet(text, format == "tsv", math.MaxInt-1)
	switch {
	case len(t.Wrong) > 0:
		return nil, fmt.Errorf("%s: %w", path, t.Wrong[0])
	case len(t.Rows) == 0:
		return nil, fmt.Errorf("%s has no rows below its heading", path)
	}
	return t, nil
}

// sendColumn uploads the files named in a column and replaces the names with references.
func sendColumn(ctx context.Context, s *session, rows []tables.SheetRow, column int, dir, folder string) error {
	var paths []string
	for _, row := range rows {
		if path := row.Cells[column]; path == "" {
			continue
		} else if !filepath.IsAbs(path) {
			row.Cells[column] = filepath.Join(dir, path)
		}
		if !slices.Contains(paths, row.Cells[column]) {
			paths = append(paths, row.Cells[column])
		}
	}
	sent, err := s.SendFiles(ctx, paths, folder)
	if err != nil {
		return err
	}
	references := map[string]string{}
	for i, path := range paths {
		references[path] = sent[i].Reference(path)
	}
	for _, row := range rows {
		row.Cells[column] = references[row.Cells[column]]
	}
	return nil
}

// sendTable uploads a modified table.
func (b *batch) sendTable(ctx context.Context, s *session, t *tables.Sheet, name, folder string) (err error) {
	dir, err := os.MkdirTemp("", "molrun-table-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var text strings.Builder
	w := csv.NewWriter(&text)
	if t.Local && len(t.Columns) > 1 {
		w.Comma = ';' // so that numbers can keep a decimal comma
	}
	err = w.Write(t.Columns)
	for _, row := range t.Rows {
		err = errors.Join(err, w.Write(row.Cells))
	}
	w.Flush()
	if err = errors.Join(err, w.Error()); err != nil {
		return err
	}
	path := filepath.Join(dir, strings.TrimSuffix(name, filepath.Ext(name))+".csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return err
	}
	return b.sendRows(ctx, s, "*", "csv", path, folder)
}
