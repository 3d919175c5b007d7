package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ResultRequest names a result of a job. File "" is the archive of all files;
// Partial takes the completed rows of a batch, Inputs adds the input files to an
// archive.
type ResultRequest struct {
	Job     string `json:"jobName"`
	File    string `json:"fileName,omitempty"`
	Partial bool   `json:"partial,omitempty"`
	Inputs  bool   `json:"inputs,omitempty"`
}

// Result is a link to a file, valid for an hour.
type Result struct {
	DownloadURL string    `json:"downloadUrl"`
	FileName    string    `json:"fileName"`
	Size        int64     `json:"size"`
	ExpiresAt   time.Time `json:"expiresAt"`
	Missing     *Missing  `json:"missing,omitempty"`
}

// Missing is the rows that are missing in the archive of a batch, since they are not COMPLETED.
type Missing struct {
	Count   int      `json:"count"`
	Rows    []string `json:"rows"` // the first of them
	Message string   `json:"message"`
}

// Result requests a link.
func (c *Client) Result(ctx context.Context, r ResultRequest) (*Result, error) {
	return requestJSON[Result](ctx, c, http.MethodPost, "/result", nil, r)
}

// ResultFile is a file of a job. Only those of completed jobs have a digest.
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

// View is something that can be looked at of a job.
type View struct {
	Name  string     `json:"name"`
	Kind  string     `json:"kind"` // structure, trajectory, series, table, matrix, alignment, image, text
	Title string     `json:"title"`
	Files []ViewFile `json:"files"` // may be none
}

// ViewFile is a file of a view.
type ViewFile struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Topology string `json:"topology,omitempty"` // of a trajectory: path of the file that says what moves
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
	Type  string `json:"type,omitempty"` // of a table: number or text
	Title string `json:"title,omitempty"`
	Unit  string `json:"unit,omitempty"`
}

// Series is the columns of a series, thinned for drawing; the first one is the axis.
type Series struct {
	File    string       `json:"file"`
	Rows    int64        `json:"rows"` // of the file
	Columns []Column     `json:"columns"`
	Values  [][]*float64 `json:"values"` // by column; nil where there is no number
}

// Series returns a view of the kind series. File "" is the first of the view.
func (c *Client) Series(ctx context.Context, job, view, file string) (*Series, error) {
	return requestJSON[Series](ctx, c, http.MethodGet, path("jobs", job, "series", view), fileQuery(file), nil)
}

// Rows are the first rows of a table.
type Rows struct {
	File    string   `json:"file"`
	Columns []Column `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

// Table returns the first rows of a view of the kind table or series. File "" is the first
// of the view.
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
	defer resp.Body.Close() // only read from
	return io.ReadAll(io.LimitReader(resp.Body, limit))
}
