package agent

import (
	"context"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"molrun/app/client"
	"molrun/web/edge"
)

// Handler serves MCP over HTTP. It handles each request with the request's own key, by
// sending requests to api in the same process. If the key is missing or invalid, the
// client gets api's error response.
func Handler(api http.Handler, version string) http.Handler {
	var known described
	serve := func(r *http.Request) *mcp.Server {
		caller := edge.InProcessClient(api, r)
		spec, err := known.schemas(r.Context(), caller)
		if err != nil {
			return nil // nil means status 400; the key has already been checked
		}
		return serverOf(caller, version, spec)
	}
	transport := mcp.NewStreamableHTTPHandler(serve, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: 2 * maxUpload,
		DisableLocalhostProtection: true, // requests need a key, which web pages don't have
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if edge.RefuseCaller(api, w, r) {
			return
		}
		transport.ServeHTTP(w, r)
	})
}

// described caches the service's API description, which is the same for all callers.
type described struct {
	mu   sync.Mutex
	spec map[string]any
}

func (d *described) schemas(ctx context.Context, api *client.Client) (map[string]any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spec != nil {
		return d.spec, nil
	}
	spec, err := schemas(ctx, api)
	d.spec = spec
	return spec, err
}
