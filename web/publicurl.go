package web

import (
	"net/http"
	"strings"

	"molrun/app/base/fault"
)

// publicURL is the configured address of the service, "" if there is none.
type publicURL string

// BaseURL returns the address under which the client of a request reaches the service:
// the configured one, if there is one.
func BaseURL(configured string, r *http.Request) (string, error) { return publicURL(configured).of(r) }

// of returns what links begin with: the configured address, else the one that
// this request was sent to. Forwarded headers are not trusted.
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

// plausibleHost reports whether host has only characters of names, addresses
// and ports, none of which ends the host within a URL.
func plausibleHost(host string) bool {
	const known = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]"
	return host != "" && len(host) <= 255 && strings.Trim(host, known) == ""
}
