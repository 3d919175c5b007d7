package blobs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"molrun/app"
)

// Prefix begins the path of every link; the handler serves all below it.
const Prefix = "/blobs/"

// MaxLinkLife is the longest that a link may work. What claims to live longer
// is refused, so a stolen clock can't make a link for ever.
const MaxLinkLife = 7 * 24 * time.Hour

const (
	maxToken     = 2 << 10 // bytes; longer ones are not even parsed
	maxTokenName = 820     // bytes of a file name within a token; 200 characters and ".zip" fit
	leeway       = 5 * time.Second

	audienceGet = "blob-get"
	audiencePut = "blob-put"
)

// claims is what a token says: one verb on one thing until a time. Whoever
// holds the link can read them, so nothing in them is anyone's secret.
type claims struct {
	jwt.RegisteredClaims              // iss, aud, sub (the id), exp, iat, jti
	Method               string       `json:"m"`
	Kind                 app.LinkKind `json:"k"`
	File                 int          `json:"f,omitempty"`
	Filename             []byte       `json:"fn,omitempty"` // base64, as JSON would make some names six times as long
	ContentType          string       `json:"ct,omitempty"`
}

// links signs and verifies.
type links struct {
	issuer   string
	kid      string // of the key that signs
	keys     map[string][]byte
	get, put *jwt.Parser
	now      func() time.Time
}

func newLinks(s *Secret, now func() time.Time) *links {
	keys := make(map[string][]byte)
	for _, k := range s.Keys {
		keys[k.ID] = k.derive(s.StoreID, "links")
	}
	parser := func(audience string) *jwt.Parser {
		return jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
			jwt.WithExpirationRequired(),
			jwt.WithAudience(audience),
			jwt.WithIssuer(s.StoreID),
			jwt.WithIssuedAt(),
			jwt.WithStrictDecoding(),
			jwt.WithLeeway(leeway),
			jwt.WithTimeFunc(now),
		)
	}
	return &links{
		issuer: s.StoreID,
		kid:    s.newest().ID,
		keys:   keys,
		get:    parser(audienceGet),
		put:    parser(audiencePut),
		now:    now,
	}
}

// verbOf gives the method and audience of a kind of link.
func verbOf(kind app.LinkKind) (method, audience string) {
	if kind == app.UploadPut {
		return http.MethodPut, audiencePut
	}
	return http.MethodGet, audienceGet
}

// sign makes the path and query of a link. The name in the path is there for
// people and for tools that name a download after it; only the id counts.
func (l *links) sign(link app.Link) string {
	now := l.now()
	expires := link.Expires
	if latest := now.Add(MaxLinkLife); expires.After(latest) {
		expires = latest
	}
	method, audience := verbOf(link.Kind)
	name := linkName(link.Filename)
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, &claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    l.issuer,
			Audience:  jwt.ClaimStrings{audience},
			Subject:   link.ID,
			ExpiresAt: jwt.NewNumericDate(expires),
			IssuedAt:  jwt.NewNumericDate(now),
			ID:        rand.Text(),
		},
		Method:      method,
		Kind:        link.Kind,
		File:        link.File,
		Filename:    []byte(name),
		ContentType: link.ContentType,
	})
	token.Header["kid"] = l.kid
	signed, err := token.SignedString(l.keys[l.kid])
	if err != nil {
		panic("blobs: sign link: " + err.Error()) // only a key of a wrong type can do that
	}
	return Prefix + link.ID + "/" + url.PathEscape(name) + "?token=" + signed
}

// linkName gives the last part of a name, short enough for a token. What is
// cut off goes from the front, as the extension says more.
func linkName(name string) string {
	name = path.Base(name)
	if name == "." || name == ".." || name == "/" {
		return "download"
	}
	for len(name) > maxTokenName {
		_, n := utf8.DecodeRuneInString(name)
		name = name[n:]
	}
	return name
}

// verify gives what the request's link allows, or LinkInvalid or LinkExpired.
func (l *links) verify(r *http.Request) (*claims, error) {
	id, err := pathID(r.URL)
	if err != nil {
		return nil, invalidLink(err)
	}
	token, err := queryToken(r.URL)
	if err != nil {
		return nil, invalidLink(err)
	}
	method, parser := r.Method, l.get
	switch method {
	case http.MethodHead:
		method = http.MethodGet
	case http.MethodPut:
		parser = l.put
	}
	var c claims
	if _, err := parser.ParseWithClaims(token, &c, l.key); err != nil {
		if errors.Is(err, jwt.ErrTokenExpired) {
			return nil, &app.Error{Code: app.LinkExpired, Message: "This link has expired; ask for a new one.", Err: err}
		}
		return nil, invalidLink(err)
	}
	if err := c.check(id, method); err != nil {
		return nil, invalidLink(err)
	}
	return &c, nil
}

// check compares the claims with the request, beyond what the parser did.
func (c *claims) check(id, method string) error {
	want, _ := verbOf(c.Kind)
	switch {
	case c.Subject != id:
		return errors.New("the path names another id than the token")
	case c.Method != method || want != method:
		return fmt.Errorf("the token is for %s", c.Method)
	case c.IssuedAt == nil:
		return errors.New("the token lacks its time of issue")
	case c.ExpiresAt.Sub(c.IssuedAt.Time) > MaxLinkLife:
		return errors.New("the token lives too long")
	}
	return nil
}

// key finds the key that a token names, by exact lookup and nothing else.
func (l *links) key(t *jwt.Token) (any, error) {
	if t.Method != jwt.SigningMethodHS256 {
		return nil, errors.New("the token is not signed by HS256")
	}
	kid, _ := t.Header["kid"].(string)
	key, ok := l.keys[kid]
	if !ok {
		return nil, errors.New("the token names an unknown key")
	}
	return key, nil
}

// pathID takes the id out of /blobs/<id>/<name>.
func pathID(u *url.URL) (string, error) {
	rest, ok := strings.CutPrefix(u.EscapedPath(), Prefix)
	if !ok {
		return "", errors.New("the path is not one of a link")
	}
	id, name, _ := strings.Cut(rest, "/")
	if name == "" || strings.Contains(name, "/") {
		return "", errors.New("the path is not one of a link")
	}
	if _, err := app.ParseID(id); err != nil {
		return "", err
	}
	return id, nil
}

// queryToken takes the token out of a query that consists of nothing else.
func queryToken(u *url.URL) (string, error) {
	if len(u.RawQuery) > maxToken+len("token=") {
		return "", errors.New("the query is too long")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", err
	}
	tokens := query["token"]
	if len(query) != 1 || len(tokens) != 1 || len(tokens[0]) > maxToken {
		return "", errors.New("the query is not one token")
	}
	return tokens[0], nil
}

func invalidLink(cause error) error {
	return &app.Error{
		Code:    app.LinkInvalid,
		Message: "This link does not allow the request; use it unchanged and with its own method, or ask for a new one.",
		Err:     cause,
	}
}
