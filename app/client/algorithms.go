package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Algorithm is an algorithm of the service. Only Client.Algorithm fills in Schema,
// Parameters and Example.
type Algorithm struct {
	Type        string          `json:"type"`
	Version     string          `json:"version"`
	Versions    []string        `json:"versions"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Categories  []string        `json:"categories,omitempty"`
	Functions   []string        `json:"functions,omitempty"`
	Keywords    []string        `json:"keywords,omitempty"`
	Status      string          `json:"status,omitempty"`
	Cite        []string        `json:"cite,omitempty"`
	Ready       bool            `json:"ready"`
	Missing     []string        `json:"missing"`
	Parameters  []Parameter     `json:"parameters,omitempty"`
	Metrics     []TableColumn   `json:"metrics,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Example     json.RawMessage `json:"example,omitempty"`
}

// Parameter is a setting of an algorithm.
type Parameter struct {
	Name     string          `json:"name"`
	Title    string          `json:"title"`
	Type     any             `json:"type"` // a string or a list of strings
	Unit     string          `json:"unit"`
	Help     string          `json:"help"`
	Required bool            `json:"required"`
	Default  json.RawMessage `json:"default"`
	File     []string        `json:"file"`
	Schema   any             `json:"schema"`
}

// Algorithms lists the algorithms.
func (c *Client) Algorithms(ctx context.Context) ([]Algorithm, error) {
	out, err := requestJSON[struct {
		Algorithms []Algorithm `json:"algorithms"`
	}](ctx, c, http.MethodGet, "/algorithms", nil, nil)
	if err != nil {
		return nil, err
	}
	return out.Algorithms, nil
}

// Algorithm returns one algorithm. An empty version means the default.
func (c *Client) Algorithm(ctx context.Context, typ, version string) (*Algorithm, error) {
	q := url.Values{}
	if version != "" {
		q.Set("version", version)
	}
	return requestJSON[Algorithm](ctx, c, http.MethodGet, path("algorithms", typ), q, nil)
}
