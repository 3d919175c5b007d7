package msa

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"molrun/app/client"
	"molrun/web/edge"
)

// member is a file of an archive. It is written twice: once to determine its size, and
// once into the archive.
type member struct {
	name  string
	write func(io.Writer) error
}

func text(name, content string) member {
	return member{name, func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	}}
}

// download handles GET result/download/{ticket}.
func (c *call) download() error {
	t, job, err := c.findJob()
	if err != nil {
		return err
	}
	if job.Type != typ || job.Status != "COMPLETED" {
		return refuse(http.StatusBadRequest, "The job "+job.Name+" is not complete.")
	}
	members, err := c.members(t, job)
	if err != nil {
		return err
	}
	return c.pack(members, job.CompletedAt)
}

// pack sends an archive. It does not announce its length, because clients always notice a
// chunked response that ends early, but not always one with a length.
func (c *call) pack(members []member, at time.Time) error {
	sizes := make([]int64, len(members))
	for i, one := range members {
		var size counter
		if err := one.write(&size); err != nil {
			return err
		}
		sizes[i] = int64(size)
	}
	zip, err := gzip.NewWriterLevel(c.begin("application/octet-stream", http.StatusOK), gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zip)
	for i, one := range members {
		if err := archive.WriteHeader(&tar.Header{Name: one.name, Mode: 0o644, Size: sizes[i], ModTime: at}); err != nil {
			return err
		}
		if err := one.write(archive); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zip.Close())
}

type counter int64

// Write implements io.Writer.
func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}

// Names of a chain's alignment files in a result, and of a file in archives.
const (
	wholeFile  = "alignments/%03d.a3m"
	unirefFile = "alignments/%03d.uniref.a3m"
	envFile    = "alignments/%03d.env.a3m"
	pairedFile = "paired/%03d.a3m"

	envMember = "bfd.mgnify30.metaeuk30.smag30.a3m"
)

// members returns the files of a job in the format of its ticket.
func (c *call) members(t ticket, job *client.Job) ([]member, error) {
	listed, err := c.api.ResultFiles(c.ctx(), job.Name)
	if err != nil {
		return nil, err
	}
	r := result{call: c, job: job.Name, ticket: t}
	for _, f := range listed {
		r.files = append(r.files, f.Path)
	}
	for r.has(wholeFile, r.chains) {
		r.chains++
	}
	if r.chains == 0 || t.names != nil && len(t.names) != r.chains {
		return nil, errIncomplete(job)
	}
	about := "# Computed by molrun: job " + job.Name + ", type " + job.Type + " " + job.Version + ", settings " + string(job.Settings) + "\n"
	if t.form == paired {
		if r.chains > 1 && !r.has(pairedFile, 0) {
			return nil, errIncomplete(job)
		}
		return []member{r.alignment("pair.a3m", pairedFile), text("pair.sh", about)}, nil
	}
	uniref := unirefFile
	if !r.has(unirefFile, 0) {
		uniref = wholeFile
	}
	members := []member{r.alignment("uniref.a3m", uniref)}
	if bytes.Contains(job.Settings, []byte(`"env":true`)) {
		members = append(members, r.alignment(envMember, envFile))
		if !r.has(envFile, 0) {
			about += "# No environmental database was searched: " + envMember + " has the queries alone.\n"
		}
	}
	if t.form == withTemplates {
		members = append(members, text("pdb70.m8", ""))
		about += "# There is no template database: pdb70.m8 is empty.\n"
	}
	return append(members, text("msa.sh", about)), nil
}

func errIncomplete(job *client.Job) error {
	return refuse(http.StatusNotFound, "The result of job "+job.Name+" lacks alignments; delete the job and submit the query again.")
}

// result is the result of a job.
type result struct {
	*call
	job    string
	ticket ticket
	files  []string
	chains int
}

func (r *result) has(pattern string, chain int) bool {
	return slices.Contains(r.files, fmt.Sprintf(pattern, chain+1))
}

// alignment joins the files of all chains, each under the client's name for the chain and
// followed by a NUL. A chain without a file contributes only its query.
func (r *result) alignment(name, pattern string) member {
	return member{name, func(w io.Writer) error {
		for i := range r.chains {
			out := &renamed{to: w, name: r.ticket.name(i)}
			file := fmt.Sprintf(pattern, i+1)
			if !r.has(pattern, i) {
				file, out.queryOnly = fmt.Sprintf(wholeFile, i+1), true
			}
			if err := r.send(file, out); err != nil {
				return err
			}
		}
		return nil
	}}
}

// send streams a file of the result from the API.
func (r *result) send(file string, to *renamed) error {
	path := "/jobs/" + url.PathEscape(r.job) + "/files/" + file
	w := &streamed{header: http.Header{}, to: to}
	r.mount.api.ServeHTTP(w, edge.InProcessRequest(r.r, http.MethodGet, path, nil))
	if w.status != http.StatusOK {
		return refuse(w.status, "The file "+file+" of the job "+r.job+" can't be read.")
	}
	return to.end()
}

// streamed forwards a successful response of the API.
type streamed struct {
	header http.Header
	status int
	to     io.Writer
}

// Header implements http.ResponseWriter.
func (w *streamed) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *streamed) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *streamed) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.status != http.StatusOK {
		return len(p), nil
	}
	return w.to.Write(p)
}

// renamed writes an A3M file with the query renamed and a NUL appended.
type renamed struct {
	to        io.Writer
	name      string
	queryOnly bool // omit all other records

	records int
	inName  bool // within the query's name line
	read    byte // last byte read, or 0 at the beginning
	wrote   byte
}

// Write implements io.Writer.
func (w *renamed) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if err := w.line(line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// line writes a line or part of a line.
func (w *renamed) line(part []byte) error {
	begins := w.read == 0 || w.read == '\n'
	w.read = part[len(part)-1]
	switch {
	case begins && part[0] == '>':
		w.records++
		if w.inName = w.records == 1; w.inName {
			return w.put([]byte(">" + w.name + "\n"))
		}
	case begins:
		w.inName = false
	}
	if w.records == 0 || w.inName || w.queryOnly && w.records > 1 {
		return nil
	}
	return w.put(part)
}

func (w *renamed) put(p []byte) error {
	w.wrote = p[len(p)-1]
	_, err := w.to.Write(p)
	return err
}

func (w *renamed) end() error {
	if w.wrote != '\n' {
		if err := w.put([]byte("\n")); err != nil {
			return err
		}
	}
	return w.put([]byte{0})
}

// templates handles GET template/{list}. There is no template database, so the archive
// contains no templates.
func (c *call) templates() error {
	return c.pack([]member{text("pdb70_a3m.ffdata", ""), text("pdb70_a3m.ffindex", "")}, time.Unix(0, 0))
}
