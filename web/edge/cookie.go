package edge

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Cookie is the session cookie of a service. PublicURL is the service's public address,
// or "" if it is unknown. Browsers send the cookie only to this service, and scripts
// can't read it.
//
// Without a Path, a browser limits a cookie to the folder of the request that set it: the
// folder of /session as the browser sees it, even if a proxy strips a prefix. Only a name
// with the prefix __Host-, which keeps neighboring hosts in the domain from setting the
// cookie, requires the path "/".
type Cookie struct{ PublicURL string }

const cookieName = "molrun"

// Value returns the cookie's value in a request, or "" if the request has no such cookie
// or several.
func (c Cookie) Value(r *http.Request) string {
	all := r.CookiesNamed(c.shape(r).Name)
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// Set stores a value in the browser until the given time.
func (c Cookie) Set(w http.ResponseWriter, r *http.Request, value string, until time.Time) {
	one := c.shape(r)
	one.Value, one.Expires = value, until
	http.SetCookie(w, one)
}

// Clear deletes the cookie in the browser.
func (c Cookie) Clear(w http.ResponseWriter, r *http.Request) {
	one := c.shape(r)
	one.MaxAge = -1
	http.SetCookie(w, one)
}

// shape returns the cookie without its value.
func (c Cookie) shape(r *http.Request) *http.Cookie {
	public, err := url.Parse(c.PublicURL)
	known := err == nil && public.Host != ""
	one := &http.Cookie{
		Name: cookieName, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || known && public.Scheme == "https",
	}
	switch {
	case one.Secure && known && strings.Trim(public.Path, "/") == "":
		one.Name, one.Path = "__Host-"+cookieName, "/"
	case one.Secure:
		one.Name = "__Secure-" + cookieName
	default:
		// Browsers send cookies to all ports of a host, so that two services without
		// different cookie names would sign out each other's users.
		if _, port, err := net.SplitHostPort(r.Host); err == nil && strings.Trim(port, "0123456789") == "" && port != "" {
			one.Name += "-" + port
		}
	}
	return one
}
