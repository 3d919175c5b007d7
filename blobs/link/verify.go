package link

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"molrun/app"
	"molrun/app/base/fault"
	"molrun/app/base/sortid"
)

// Verify returns the link of a request. If the link does not allow the request, the error
// is LinkInvalid, LinkExpired, or, for a download link with a method that only resumable
// uploads use, MethodNotAllowed. The link's Holder is a pseudonym.
func (s *Signer) Verify(r *http.Request) (app.Link, error) {
	c, err := s.ring.Load().verify(r)
	switch {
	case errors.Is(err, fault.LinkExpired), errors.Is(err, fault.MethodNotAllowed):
		return app.Link{}, err
	case err != nil:
		return app.Link{}, Invalid(err)
	}
	return app.Link{
		Kind: c.Kind, ID: c.Subject, File: c.File, Inputs: c.Inputs, Filename: string(c.Filename),
		ContentType: c.ContentType, Holder: c.Holder, Expires: c.ExpiresAt.Time,
	}, nil
}

var errRevoked = errors.New("the links of its holder were revoked")

// Revoked reports whether an error of Verify means that the link was revoked. This is not
// disclosed to clients.
func Revoked(err error) bool { return errors.Is(err, errRevoked) }

// Invalid returns the error LinkInvalid. The cause is only logged.
func Invalid(cause error) error {
	return &fault.Error{
		Code:    fault.LinkInvalid,
		Message: "This link does not allow the request; use it unchanged and with its own method, or request a new one.",
		Err:     cause,
	}
}

// verify returns the claims of a request's token. It returns LinkExpired only if the
// token is otherwise valid.
func (r *ring) verify(request *http.Request) (*claims, error) {
	id, name, err := splitPath(request.URL)
	if err != nil {
		return nil, err
	}
	// The query must be exactly the token. No character of a token needs escaping, so
	// escapes are rejected too.
	text, ok := strings.CutPrefix(request.URL.RawQuery, "token=")
	if !ok || len(text) > maxToken || strings.Count(text, ".") != 2 {
		return nil, errors.New("the query is not one token")
	}
	switch request.Method {
	case http.MethodGet:
		return r.verifyToken(r.get, id, name, text)
	case http.MethodHead: // of a file, or of a resumable upload
		c, err := r.verifyToken(r.get, id, name, text)
		if err == nil || errors.Is(err, fault.LinkExpired) {
			return c, err
		}
		return r.verifyToken(r.put, id, name, text)
	case http.MethodPut:
		return r.verifyToken(r.put, id, name, text)
	case http.MethodPatch, http.MethodDelete, http.MethodOptions: // of a resumable upload
		c, err := r.verifyToken(r.put, id, name, text)
		if err == nil || errors.Is(err, fault.LinkExpired) {
			return c, err
		}
		if _, download := r.verifyToken(r.get, id, name, text); download == nil {
			return nil, fault.Errorf(fault.MethodNotAllowed, "Use GET or HEAD with a download link.")
		}
		return nil, err
	}
	return nil, fmt.Errorf("no link allows %s", request.Method)
}

// verifyToken returns the claims of a token that allows a verb on a file.
func (r *ring) verifyToken(allowed *verb, id, name, text string) (*claims, error) {
	c := new(claims)
	token, parseErr := allowed.parser.ParseWithClaims(text, c, allowed.key)
	if parseErr != nil && !onlyExpired(parseErr) {
		return nil, parseErr
	}
	switch {
	case c.Subject != id:
		return nil, errors.New("the path and the token have different IDs")
	case string(c.Filename) != name:
		return nil, errors.New("the path and the token have different file names")
	case c.Method != allowed.method || r.verb(c.Kind) != allowed:
		return nil, fmt.Errorf("the token is for %s", c.Method)
	}
	if err := errors.Join(c.check(), asSigned(token, c)); err != nil {
		return nil, err
	}
	if r.revokes(c) {
		return nil, errRevoked
	}
	if parseErr != nil {
		return nil, &fault.Error{Code: fault.LinkExpired, Message: "This link has expired; request a new one.", Err: parseErr}
	}
	return c, nil
}

// splitPath returns the ID and the name from /blobs/<id>/<name>, with the name unescaped
// once.
func splitPath(u *url.URL) (id, name string, err error) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), Prefix)
	id, name, _ = strings.Cut(rest, "/")
	if !ok || name == "" || strings.Contains(name, "/") {
		return "", "", errors.New("the path is not that of a link")
	}
	if _, err := sortid.Parse(id); err != nil {
		return "", "", err
	}
	name, err = url.PathUnescape(name)
	return id, name, err
}

// key returns the key selected by a token, by exact lookup only.
func (v *verb) key(t *jwt.Token) (any, error) {
	if t.Method != jwt.SigningMethodHS256 {
		return nil, errors.New("the token is not signed by HS256")
	}
	kid, _ := t.Header["kid"].(string)
	key, ok := v.keys[kid]
	if !ok {
		return nil, errors.New("the token names an unknown key")
	}
	return key, nil
}

// onlyExpired reports whether a token is invalid only because it has expired. The parser
// checks the signature before the time.
func onlyExpired(err error) bool {
	if !errors.Is(err, jwt.ErrTokenExpired) {
		return false
	}
	for _, other := range []error{
		jwt.ErrTokenInvalidAudience, jwt.ErrTokenInvalidIssuer, jwt.ErrTokenUsedBeforeIssued, jwt.ErrTokenNotValidYet,
		jwt.ErrTokenSignatureInvalid, jwt.ErrTokenUnverifiable, jwt.ErrTokenMalformed,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}

// check rejects claims that the parser allows but Sign never makes.
func (c *claims) check() error {
	switch {
	case len(c.Audience) != 1 || c.NotBefore != nil || c.ID == "":
		return errors.New("the token has claims that the service does not issue")
	case c.IssuedAt == nil:
		return errors.New("the token has no issue time")
	case c.ExpiresAt == nil || c.ExpiresAt.Before(c.IssuedAt.Time) || c.ExpiresAt.Sub(c.IssuedAt.Time) > MaxLifetime:
		return errors.New("the token's lifetime is negative or too long")
	}
	return nil
}

// asSigned requires the exact text that Sign produces for the claims: no additional or
// duplicate member in header or payload, and none in a different form. Thus no header can
// supply a key, and two parsers of a token cannot disagree.
func asSigned(t *jwt.Token, c *claims) error {
	again := jwt.NewWithClaims(jwt.SigningMethodHS256, c)
	again.Header["kid"] = t.Header["kid"]
	text, err := again.SigningString()
	if err != nil || !strings.HasPrefix(t.Raw, text+".") {
		return errors.New("the token is not in the service's canonical form")
	}
	return nil
}
