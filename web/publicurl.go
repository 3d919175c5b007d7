package web

import (
	"net/http"
	"strings"

	"molrun/app/base/fault"
)

// publicURL is the configured address of the service, or "" if there is none.
type publicURL string

// BaseURL returns the base URL at which the client of a request reaches the service: the
// configured one or, without one, the one in the request.
func BaseURL(configured string, r *http.Request) (string, error) { return publicURL(configured).of(r) }

// of returns the base URL of links: the configured address or, without one, the one to
// which this request was sent. It does not trust forwarded headers.
func (p publicURL) of(r *http.Request) (string, error) {
	if p != "" {
		return string(p), nil
	}
	if !plausibleHost(r.Host) {
		return "", fault.List(fault.Field{
			Loc: []any{"header", "Host"}, Type: "value",
			Msg: "send a host name or address, with a port if needed",
		})
	}
	if r.TLS != nil {
		return "https://" + r.Host, nil
	}
	return "http://" + r.Host, nil
}

// plausibleHost reports whether host has only characters of names, addresses and ports,
// none of which could end the host in a URL.
func plausibleHost(host string) bool {
	const known = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]"
	return host != "" && len(host) <= 255 && strings.Trim(host, known) == ""
}
