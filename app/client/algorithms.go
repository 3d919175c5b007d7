package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Algorithm is something that can be run. Only Client.Algorithm fills in Schema
// and Example.
type Algorithm struct {
	Type        string          `json:"type"`
	Version     string          `json:"version"`
	Versions    []string        `json:"versions"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Ready       bool            `json:"ready"`
	Missing     []string        `json:"missing"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Example     json.RawMessage `json:"example,omitempty"`
}

// Algorithms lists the algorithms.
func (c *Client) Algorithms(ctx context.Context) ([]Algorithm, error) {
	out, err := ask[struct {
		Algorithms []Algorithm `json:"algorithms"`
	}](ctx, c, http.MethodGet, "/algorithms", nil, nil)
	if err != nil {
		return nil, err
	}
	return out.Algorithms, nil
}

// Algorithm returns one algorithm. Version "" is the default.
func (c *Client) Algorithm(ctx context.Context, typ, version string) (*Algorithm, error) {
	q := url.Values{}
	if version != "" {
		q.Set("version", version)
	}
	return ask[Algorithm](ctx, c, http.MethodGet, path("algorithms", typ), q, nil)
}
