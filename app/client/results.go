package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ResultRequest selects a result of a job. An empty File means the archive of all files.
// Partial accepts a batch with only the completed jobs; Inputs adds the input files to an
// archive.
type ResultRequest struct {
	Job     string `json:"jobName"`
	File    string `json:"fileName,omitempty"`
	Partial bool   `json:"partial,omitempty"`
	Inputs  bool   `json:"inputs,omitempty"`
}

// Result is a link to a file, valid for one hour.
type Result struct {
	DownloadURL string    `json:"downloadUrl"`
	FileName    string    `json:"fileName"`
	Size        int64     `json:"size"`
	ExpiresAt   time.Time `json:"expiresAt"`
	Missing     *Missing  `json:"missing,omitempty"`
}

// Missing lists the jobs of a batch that are missing from its archive because they are
// not COMPLETED.
type Missing struct {
	Count   int      `json:"count"`
	Rows    []string `json:"rows"` // only the first ones
	Message string   `json:"message"`
}

// Result requests a link.
func (c *Client) Result(ctx context.Context, r ResultRequest) (*Result, error) {
	return requestJSON[Result](ctx, c, http.MethodPost, "/result", nil, r)
}

// ResultFile is a file of a job. Only files of completed jobs have a digest.
type ResultFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// ResultFiles lists the files of a job that is running, failed or completed.
func (c *Client) ResultFiles(ctx context.Context, name string) ([]ResultFile, error) {
	out, err := requestJSON[struct {
		Files []ResultFile `json:"files"`
	}](ctx, c, http.MethodGet, path("jobs", name, "files"), nil, nil)
	if err != nil {
		return nil, err
	}
	return out.Files, nil
}

// View is a viewable part of a job's files.
type View struct {
	Name  string     `json:"name"`
	Kind  string     `json:"kind"` // structure, trajectory, series, table, matrix, alignment, tree, image, text
	Title string     `json:"title"`
	Files []ViewFile `json:"files"` // can be empty
}

// ViewFile is a file of a view.
type ViewFile struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Topology string `json:"topology,omitempty"` // for trajectories: path of the topology
}

// Views lists the views of a job.
func (c *Client) Views(ctx context.Context, job string) ([]View, error) {
	out, err := requestJSON[struct {
		Views []View `json:"views"`
	}](ctx, c, http.MethodGet, path("jobs", job, "views"), nil, nil)
	if err != nil {
		return nil, err
	}
	return out.Views, nil
}

// Column is a column of a series or table.
type Column struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"` // for tables: number or text
	Title string `json:"title,omitempty"`
	Unit  string `json:"unit,omitempty"`
}

// Series holds the columns of a series, downsampled for drawing. The first column is the
// x axis.
type Series struct {
	File    string       `json:"file"`
	Rows    int64        `json:"rows"` // in the file
	Columns []Column     `json:"columns"`
	Values  [][]*float64 `json:"values"` // by column; nil if not a number
}

// Series returns a view of kind series. An empty file means the first file of the view.
func (c *Client) Series(ctx context.Context, job, view, file string) (*Series, error) {
	return requestJSON[Series](ctx, c, http.MethodGet, path("jobs", job, "series", view), fileQuery(file), nil)
}

// Rows holds the first rows of a table.
type Rows struct {
	File    string   `json:"file"`
	Columns []Column `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

// Table returns the first rows of a view of kind table or series. An empty file means the
// first file of the view.
func (c *Client) Table(ctx context.Context, job, view, file string) (*Rows, error) {
	return requestJSON[Rows](ctx, c, http.MethodGet, path("jobs", job, "tables", view), fileQuery(file), nil)
}

func fileQuery(file string) url.Values {
	if file == "" {
		return nil
	}
	return url.Values{"file": {file}}
}

// ReadFile returns the first limit bytes of a job's file.
func (c *Client) ReadFile(ctx context.Context, job, file string, limit int64) (text []byte, err error) {
	segments := append([]string{"jobs", job, "files"}, strings.Split(file, "/")...)
	resp, err := c.sendRequest(ctx, http.MethodGet, path(segments...), nil, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() // read-only
	return io.ReadAll(io.LimitReader(resp.Body, limit))
}
