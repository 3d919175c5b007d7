package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/client"
)

// pipelineFile describes a batch whose jobs have their own types and can refer to each
// other. Jobs without Priority, MaxRuntime or After inherit those of the batch.
type pipelineFile struct {
	Name string    `json:"batchName,omitempty"`
	Jobs []jobFile `json:"jobs,omitempty"`
	client.Terms
}

// readPipelineFile reads a description with a list of jobs, in the formats of
// [readJobFile].
func readPipelineFile(name string, r io.Reader) (p pipelineFile, err error) {
	err = readDocument(name, r, &p, func(tree map[string]any) error {
		if err := checkMembers(tree, memberNames[pipelineFile]()); err != nil {
			return err
		}
		jobs, _ := tree["jobs"].([]any)
		if len(jobs) == 0 {
			return errors.New("there are no jobs; list them under jobs, each with its type and settings")
		}
		for i, job := range jobs {
			one, ok := job.(map[string]any)
			if !ok {
				return fmt.Errorf("job %d of jobs is not an object with members such as type and settings", i+1)
			}
			if err := checkMembers(one, memberNames[jobFile]()); err != nil {
				return fmt.Errorf("job %d of jobs: %w", i+1, err)
			}
		}
		return nil
	})
	return p, err
}

// describesJobs reports whether a file lists jobs, rather than being a table or sequences
// from which jobs are created.
func describesJobs(path string) bool {
	return slices.Contains([]string{".toml", ".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path)))
}

// pipeline reads a list of jobs, uploads their files and returns the batch. Flags for the
// whole batch override the file.
func (d *description) pipeline(ctx context.Context, s *session, c *cobra.Command, args, each []string) (*client.BatchSubmission, error) {
	if len(args) > 0 || len(d.set) > 0 || len(d.file) > 0 || len(each) > 0 || d.example || d.version != "" {
		return nil, Usagef("%s contains the type and settings of each job; omit TYPE, --set, --file, --each, --example and --version", d.input)
	}
	p, err := readPipeline(d.input)
	if err != nil {
		return nil, Usage(err)
	}
	common := jobFile{Name: p.Name, Type: "batch", Terms: p.Terms}
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

func readPipeline(path string) (pipelineFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return pipelineFile{}, err
	}
	defer f.Close() // read-only
	p, err := readPipelineFile(path, f)
	for i := range p.Jobs {
		resolvePaths(&p.Jobs[i], path)
	}
	return p, err
}
