package remote

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"molrun/app/client"
)

func rerunCommand() *cobra.Command {
	var name string
	var a submitFlags
	c := &cobra.Command{
		Use: "rerun JOB|RESULT.zip", Short: "Run a job again, by name or from a downloaded result",
		Args:              oneArgument("a job, or the archive of a result"),
		ValidArgsFunction: completeJobs,
		Long: `Run a job again under a new name, with the same algorithm, version, settings and files. From a
downloaded result it also works on another service, if the archive has the input files
(molrun results NAME --inputs) or the service has them.`,
		Example: Examples("molrun rerun hst5 --name hst5-again", "molrun rerun hst5.zip --wait"),
	}
	c.Flags().StringVarP(&name, "name", "n", "", "name of the new job (default: the old name with -rerun appended)")
	a.addFlags(c)
	return withSession(c, func(ctx context.Context, s *session, args []string) error {
		body, inputs, err := earlierSubmission(ctx, s, args[0])
		if err != nil {
			return err
		}
		defer inputs.remove()
		if _, err := s.SendFiles(ctx, inputs.paths, ""); err != nil {
			return err
		}
		body.Name = cmp.Or(name, body.Name+"-rerun")
		return a.submit(ctx, s, "submit-job", body)
	})
}

// earlierSubmission returns the submission of a job or of a result archive, and the input files in
// the archive.
func earlierSubmission(ctx context.Context, s *session, what string) (*client.Submission, *inputs, error) {
	in := &inputs{}
	if strings.HasSuffix(strings.ToLower(what), ".zip") {
		if _, err := os.Stat(what); err == nil {
			return fromArchive(what, in)
		}
	}
	text, err := file(ctx, s, what, "job.json")
	if err != nil {
		return nil, in, err
	}
	body, err := submissionIn(text)
	return body, in, err
}

// maxRecord is the maximum size of job.json.
const maxRecord = 256 << 20

func file(ctx context.Context, s *session, job, path string) ([]byte, error) {
	body, err := s.API.OpenBody(ctx, nil, append([]string{"jobs", job, "files"}, strings.Split(path, "/")...)...)
	if err != nil {
		return nil, err
	}
	defer body.Close() // read-only
	return io.ReadAll(io.LimitReader(body, maxRecord))
}

func submissionIn(record []byte) (*client.Submission, error) {
	var j struct {
		Submission *client.Submission `json:"submission"`
	}
	if err := decodeExact(record, &j); err != nil {
		return nil, fmt.Errorf("job.json: %w", err)
	}
	if j.Submission == nil {
		return nil, errors.New("job.json has no submission, because it is the record of a batch")
	}
	return j.Submission, nil
}

// inputs are files from an archive, unpacked temporarily.
type inputs struct {
	dir   string
	paths []string
}

func (in *inputs) remove() {
	if in.dir != "" {
		_ = os.RemoveAll(in.dir) // temporary directory
	}
}

// fromArchive reads a result archive.
func fromArchive(name string, in *inputs) (*client.Submission, *inputs, error) {
	r, err := zip.OpenReader(name)
	if err != nil {
		return nil, in, fmt.Errorf("%s: %w", name, err)
	}
	defer r.Close()
	var body *client.Submission
	for _, f := range r.File {
		_, inner, _ := strings.Cut(f.Name, "/")
		switch {
		case inner == "job.json" || f.Name == "job.json":
			text, err := readMember(f)
			if err != nil {
				return nil, in, err
			}
			if body, err = submissionIn(text); err != nil {
				return nil, in, err
			}
		case (strings.HasPrefix(inner, "inputs/") || strings.HasPrefix(f.Name, "inputs/")) && !f.FileInfo().IsDir():
			if err := in.unpackFile(f); err != nil {
				return nil, in, err
			}
		}
	}
	if body == nil {
		return nil, in, fmt.Errorf("%s has no job.json, so it is not a result of molrun", name)
	}
	return body, in, nil
}

func readMember(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, maxRecord))
}

// unpackFile unpacks one input file.
func (in *inputs) unpackFile(f *zip.File) (err error) {
	if in.dir == "" {
		if in.dir, err = os.MkdirTemp("", "molrun-rerun-"); err != nil {
			return err
		}
	}
	dir := filepath.Join(in.dir, fmt.Sprint(len(in.paths)))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	base := path.Base(f.Name)
	if !fs.ValidPath(base) || base == "." {
		return fmt.Errorf("the archive has a file without a name: %q", f.Name)
	}
	target := filepath.Join(dir, base)
	in.paths = append(in.paths, target)
	return extract(f, target)
}
