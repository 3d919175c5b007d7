package remote

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/cli/terminal"
	"molrun/app/client"
)

func resultsCommand() *cobra.Command {
	var list, partial, withInputs, extractIt, wait bool
	var file, dir string
	var w waiting
	c := &cobra.Command{
		Use: "results JOB", Short: "Download the result of a job", Args: oneArgument("the name of a job"), ValidArgsFunction: completeJobs,
		Long: `Download the result of a job as an archive, or one of its files. An interrupted download
resumes where it stopped, also when you run the command again.`,
		Example: Examples("molrun results hst5", "molrun results hst5 --list", "molrun results hst5 --file metrics.json --download out", "molrun results screen --extract --download out"),
	}
	f := c.Flags()
	f.BoolVar(&list, "list", false, "list the files, without downloading them")
	f.StringVar(&file, "file", "", "only this file")
	f.StringVar(&dir, "download", ".", "folder to write to")
	f.BoolVar(&extractIt, "extract", false, "unpack the archive after downloading")
	f.BoolVar(&partial, "partial", false, "for a batch: the jobs completed so far")
	f.BoolVar(&withInputs, "inputs", false, "include the input files")
	f.BoolVar(&wait, "wait", false, "wait for the job to finish")
	w.AddFlag(c)
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		name := args[0]
		if wait {
			j, err := s.Await(ctx, name, w)
			if err == nil {
				err = failureOf(j)
			}
			if err != nil {
				return err
			}
		}
		if list {
			return listFiles(ctx, s, name)
		}
		request := client.ResultRequest{Job: name, File: file, Partial: partial, Inputs: withInputs}
		if extractIt && file == "" {
			return unpack(ctx, s, request, filepath.Join(dir, name))
		}
		target, err := download(ctx, s, request, dir)
		if err != nil {
			return err
		}
		if s.JSON {
			return s.PrintJSON(map[string]string{"path": target})
		}
		return s.Print("%s", terminal.Clean(target))
	})
}

func listFiles(ctx context.Context, s *session, name string) error {
	a, err := s.API.Get(ctx, nil, "jobs", name, "files")
	if err != nil {
		return err
	}
	return s.PrintAnswer(a, func() error {
		list, err := client.Decode[struct {
			Files []client.ResultFile `json:"files"`
		}](a)
		if err != nil {
			return err
		}
		lines := make([][]string, len(list.Files))
		for i, f := range list.Files {
			lines[i] = []string{terminal.Size(f.Size), f.Path}
		}
		return s.Table([]terminal.Column{{Title: "SIZE", Right: true}, {Title: "FILE", MinWidth: 20}}, lines)
	})
}

// download saves a result in a folder and returns its path.
func download(ctx context.Context, s *session, r client.ResultRequest, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	base := r.Job + ".zip"
	if r.File != "" {
		base = path.Base(r.File)
	}
	target := filepath.Join(dir, filepath.Base(base))
	bars := s.NewBars()
	defer bars.Close()
	var t *terminal.Transfer
	link, err := s.API.DownloadWithProgress(ctx, r, target, func(done, size int64) {
		if t == nil {
			t = bars.Bytes(base, size)
		}
		t.At(done)
	})
	if ctx.Err() != nil {
		return "", fmt.Errorf("%w; run the same command again to resume", ctx.Err())
	}
	if err == nil && link.Missing != nil {
		s.Notef("%s", terminal.Clean(link.Missing.Message))
	}
	return target, err
}

// unpack downloads a result archive and unpacks it into dir. The archive is downloaded
// next to dir and deleted afterwards, so that dir receives only the files of the result.
func unpack(ctx context.Context, s *session, r client.ResultRequest, dir string) error {
	archive, err := download(ctx, s, r, filepath.Dir(filepath.Clean(dir)))
	if err != nil {
		return err
	}
	n, err := extractAll(archive, dir)
	if err != nil {
		return err
	}
	if err := os.Remove(archive); err != nil {
		return err
	}
	s.Notef("%d files in %s", n, dir)
	return nil
}

// extractAll unpacks an archive into a folder. It never writes outside the folder.
func extractAll(archive, dir string) (n int, err error) {
	r, err := zip.OpenReader(archive)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", archive, err)
	}
	defer r.Close()
	for _, f := range r.File {
		name := strings.TrimSuffix(f.Name, "/")
		if !filepath.IsLocal(name) {
			return n, fmt.Errorf("%s contains a path outside the archive: %q", archive, f.Name)
		}
		target := filepath.Join(dir, name)
		if f.FileInfo().IsDir() {
			if err := os.MkdirAll(target, 0o777); err != nil {
				return n, err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
			return n, err
		}
		if err := extract(f, target); err != nil {
			return n, fmt.Errorf("%s: %w", f.Name, err)
		}
		n++
	}
	return n, nil
}

// extract writes one file of an archive atomically.
func extract(f *zip.File, target string) (err error) {
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close() // read-only
	to, err := os.CreateTemp(filepath.Dir(target), ".molrun-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(to.Name()))
		}
	}()
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Chmod(0o644), to.Close()); err != nil {
		return err
	}
	return os.Rename(to.Name(), target)
}
