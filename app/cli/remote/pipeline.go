package remote

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/cli/jobfile"
	"molrun/app/cli/session"
	"molrun/app/client"
)

// describesJobs reports whether a file has a list of jobs, rather than what rows are made of.
func describesJobs(path string) bool {
	return slices.Contains([]string{".toml", ".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path)))
}

// pipeline reads a list of jobs, uploads their files and returns the batch that they are. Flags
// that are about the whole batch win over the file.
func (d *description) pipeline(ctx context.Context, s *session.Session, c *cobra.Command, args, each []string) (*client.BatchSubmission, error) {
	if len(args) > 0 || len(d.set) > 0 || len(d.file) > 0 || len(each) > 0 || d.example || d.version != "" {
		return nil, session.Usagef("%s has the type and settings of each of its jobs; leave out TYPE, --set, --file, --each, --example and --version", d.input)
	}
	p, err := readPipeline(d.input)
	if err != nil {
		return nil, session.Usage(err)
	}
	common := jobfile.Job{Name: p.Name, Type: "batch", Terms: p.Terms}
	if err := d.override(&common, c.Flags()); err != nil {
		return nil, err
	}
	body := &client.BatchSubmission{Name: common.Name, Terms: common.Terms}
	for i := range p.Jobs {
		job, err := prepare(ctx, s, &p.Jobs[i], d.folder)
		if err != nil {
			return nil, err
		}
		body.Jobs = append(body.Jobs, *job)
	}
	return body, nil
}

func readPipeline(path string) (jobfile.Pipeline, error) {
	f, err := os.Open(path)
	if err != nil {
		return jobfile.Pipeline{}, err
	}
	defer f.Close() // only read from
	p, err := jobfile.ReadPipeline(path, f)
	for i := range p.Jobs {
		place(&p.Jobs[i], path)
	}
	return p, err
}
