package edge

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Cookie is the cookie of sessions of a service with a public address, "" if it is not
// known. Browsers send it only to pages and requests of this service, and scripts can't
// read it.
//
// Without a Path, a browser limits a cookie to the folder of the request that set it:
// that of /session, as the browser sees it, also where a proxy cuts a part off. Only a
// name that begins with __Host-, which keeps neighbours in the domain from setting the
// cookie, needs "/".
type Cookie struct{ PublicURL string }

const cookieName = "molrun"

// Value returns the value of a request's cookie, "" if there is none or several.
func (c Cookie) Value(r *http.Request) string {
	all := r.CookiesNamed(c.shape(r).Name)
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// Set makes the browser keep a value until some time.
func (c Cookie) Set(w http.ResponseWriter, r *http.Request, value string, until time.Time) {
	one := c.shape(r)
	one.Value, one.Expires = value, until
	http.SetCookie(w, one)
}

// Clear makes the browser forget the value.
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
		// Browsers send cookies to all ports of a machine: two services must not sign out
		// one another's users.
		if _, port, err := net.SplitHostPort(r.Host); err == nil && strings.Trim(port, "0123456789") == "" && port != "" {
			one.Name += "-" + port
		}
	}
	return one
}
