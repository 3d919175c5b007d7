// Package edge is the layer between the network and the handlers, independent of routes:
// it limits connections and headers, determines the client's address, applies
// cross-origin rules, assigns request IDs, and responds to input that is not HTTP.
// Handlers that translate other APIs use it to send requests to the API in the same
// process.
package edge

import (
	"net/http"
	"time"
)

// Server returns a server for handler with the limits of every connection. Bodies have no
// common time limit, because uploads and downloads can take long: each route sets its own
// deadlines.
func Server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    64 << 10,
		// OPTIONS * gets the same response as any unknown route.
		DisableGeneralOptionsHandler: true,
	}
}
