package jobfile

import (
	"errors"
	"fmt"
	"io"

	"molrun/app/client"
)

// Pipeline describes a batch whose jobs have types of their own and may name one another.
// The jobs' Priority, MaxRuntime and After are those of the batch where they have none.
type Pipeline struct {
	Name string `json:"batchName,omitempty"`
	Jobs []Job  `json:"jobs,omitempty"`
	client.Terms
}

// ReadPipeline reads a description with a list of jobs, in the formats of [Read].
func ReadPipeline(name string, r io.Reader) (p Pipeline, err error) {
	err = read(name, r, &p, func(tree map[string]any) error {
		if err := checkMembers(tree, members[Pipeline]()); err != nil {
			return err
		}
		jobs, _ := tree["jobs"].([]any)
		if len(jobs) == 0 {
			return errors.New("there are no jobs; list them as jobs, each with its type and settings")
		}
		for i, job := range jobs {
			one, ok := job.(map[string]any)
			if !ok {
				return fmt.Errorf("job %d of jobs is no object with members such as type and settings", i+1)
			}
			if err := checkMembers(one, members[Job]()); err != nil {
				return fmt.Errorf("job %d of jobs: %w", i+1, err)
			}
		}
		return nil
	})
	return p, err
}
