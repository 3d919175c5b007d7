// Package edge is what stands between the network and the handlers, and knows
// no route: bounds for connections and headers, the address of the client,
// cross-origin rules, request ids, and answers to what is not HTTP. Handlers that translate use it
// to send requests to the API in the same process.
package edge

import (
	"net/http"
	"time"
)

// Server returns a server for handler with the limits of every connection.
// Bodies have no common time limit, because uploads and downloads take as long
// as they take: each route sets its own deadlines.
func Server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    64 << 10,
		// OPTIONS * is answered like any other unknown route.
		DisableGeneralOptionsHandler: true,
	}
}
