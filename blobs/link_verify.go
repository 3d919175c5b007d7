package blobs

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"molrun/app"
	"molrun/app/fault"
)

// verify gives what the request's link allows, or LinkInvalid or LinkExpired.
func (l *links) verify(r *http.Request) (*claims, error) {
	id, name, err := splitPath(r.URL)
	if err != nil {
		return nil, invalidLink(err)
	}
	token, err := queryToken(r.URL)
	if err != nil {
		return nil, invalidLink(err)
	}
	method, v := r.Method, l.get
	switch method {
	case http.MethodHead:
		method = http.MethodGet
	case http.MethodPut:
		v = l.put
	}
	var c claims
	parsed, err := v.parser.ParseWithClaims(token, &c, v.key)
	if err != nil && !expiredAlone(err) {
		return nil, invalidLink(err)
	}
	if fault := errors.Join(l.check(&c, id, name, method), asSigned(parsed, &c)); fault != nil {
		return nil, invalidLink(fault)
	}
	if err != nil {
		return nil, &fault.Error{Code: fault.LinkExpired, Message: "This link has expired; ask for a new one.", Err: err}
	}
	return &c, nil
}

// expiredAlone reports whether a token is good but for its time. Its
// signature was checked before its time was.
func expiredAlone(err error) bool {
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

// check compares the claims with the request, beyond what the parser did.
func (l *links) check(c *claims, id, name, method string) error {
	want, _ := l.verbOf(c.Kind)
	switch {
	case c.Subject != id:
		return errors.New("the path names another id than the token")
	case string(c.Filename) != name:
		return errors.New("the path names another file than the token")
	case c.Method != method || want != method:
		return fmt.Errorf("the token is for %s", c.Method)
	case len(c.Audience) != 1 || c.NotBefore != nil || c.ID == "":
		return errors.New("the token has claims that the service does not make")
	case c.IssuedAt == nil:
		return errors.New("the token lacks its time of issue")
	case c.ExpiresAt == nil || c.ExpiresAt.Before(c.IssuedAt.Time) || c.ExpiresAt.Sub(c.IssuedAt.Time) > MaxLinkLife:
		return errors.New("the token ends before it begins or lives too long")
	}
	return nil
}

// asSigned demands the very text that the service makes of such claims: no
// member more or twice in header or payload, none in another form. Thus no
// header can bring a key along, and no two readers of a token can disagree.
func asSigned(t *jwt.Token, c *claims) error {
	again := jwt.NewWithClaims(jwt.SigningMethodHS256, c)
	again.Header["kid"] = t.Header["kid"]
	text, err := again.SigningString()
	if err != nil || !strings.HasPrefix(t.Raw, text+".") {
		return errors.New("the token is not as the service writes it")
	}
	return nil
}

// key finds the key that a token names, by exact lookup and nothing else.
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

// splitPath gives the parts of /blobs/<id>/<name>, the name decoded once.
func splitPath(u *url.URL) (id, name string, err error) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), Prefix)
	if !ok {
		return "", "", errors.New("the path is not one of a link")
	}
	id, name, _ = strings.Cut(rest, "/")
	if name == "" || strings.Contains(name, "/") {
		return "", "", errors.New("the path is not one of a link")
	}
	if _, err := app.ParseID(id); err != nil {
		return "", "", err
	}
	name, err = url.PathUnescape(name)
	return id, name, err
}

// queryToken takes the token out of a query that consists of nothing else,
// not even of escapes: none of a token's characters needs one.
func queryToken(u *url.URL) (string, error) {
	token, ok := strings.CutPrefix(u.RawQuery, "token=")
	if !ok || len(token) > maxToken || strings.Count(token, ".") != 2 {
		return "", errors.New("the query is not one token")
	}
	return token, nil
}

func invalidLink(cause error) error {
	return &fault.Error{
		Code:    fault.LinkInvalid,
		Message: "This link does not allow the request; use it unchanged and with its own method, or ask for a new one.",
		Err:     cause,
	}
}
