package output

import (
	"context"
	"errors"

	"molrun/app"
	"molrun/app/algorithm/results"
	"molrun/app/base/fault"
)

// maxViewFiles is the maximum number of files listed per view.
const maxViewFiles = 1000

// View is a view and its existing files.
type View struct {
	*results.View
	Files     []ViewFile
	Truncated bool // there are more files
}

// ViewFile is a file of a view.
type ViewFile struct {
	Path     string
	Size     int64
	Topology string // of a trajectory: path of its topology file
}

// Views holds the views of a job.
type Views struct {
	Views      []View
	Incomplete bool // the job is running
}

// Views returns the views of a job, in the order of its algorithm file. A view can be
// without files because they do not exist yet or have been removed.
func (o *Outputs) Views(ctx context.Context, by app.Caller, name string) (*Views, error) {
	j, views, err := o.viewsOf(ctx, by, name)
	if err != nil {
		return nil, err
	}
	files, err := o.Files(ctx, by, name)
	if errors.Is(err, fault.JobNotCompleted) || errors.Is(err, fault.OutputRemoved) || errors.Is(err, fault.NotFound) {
		files, err = &FileListing{Incomplete: j.Status == app.Running}, nil // its files are being moved
	}
	if err != nil {
		return nil, err
	}
	all := &Views{Views: make([]View, len(views)), Incomplete: files.Incomplete}
	for i := range views {
		all.Views[i] = viewOf(&views[i], files)
	}
	return all, nil
}

// viewsOf returns a job that is not a batch and the views of its algorithm.
func (o *Outputs) viewsOf(ctx context.Context, by app.Caller, name string) (*app.Job, results.Views, error) {
	j, err := o.jobs.Named(ctx, by, name)
	if err != nil {
		return nil, nil, err
	}
	if j.IsBatch() {
		return nil, nil, fault.Errorf(fault.NotFound, "batch %q has no views of its own; request those of one of its jobs", name)
	}
	a, err := o.algorithms.Current(ctx, j) // the current version, since views do not affect results
	if err != nil {
		return nil, nil, err
	}
	return j, a.Views, nil
}

func viewOf(v *results.View, files *FileListing) View {
	view := View{View: v, Files: []ViewFile{}, Truncated: files.Truncated}
	there := map[string]bool{}
	if v.Topology != "" {
		for _, f := range files.Files {
			there[f.Path] = true
		}
	}
	for _, f := range files.Files {
		topology, ok := v.Match(f.Path)
		if !ok {
			continue
		}
		if len(view.Files) == maxViewFiles {
			view.Truncated = true
			break
		}
		if !there[topology] {
			topology = ""
		}
		view.Files = append(view.Files, ViewFile{f.Path, f.Size, topology})
	}
	return view
}
