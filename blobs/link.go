package blobs

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"path"
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
	maxToken     = 2 << 10 // bytes; longer ones are not even read
	maxTokenName = 820     // bytes of a file name within a token; 200 characters and ".zip" fit
	leeway       = 5 * time.Second

	audienceGet = "blob-get"
	audiencePut = "blob-put"
)

// claims is what a token says: one verb on one thing until a time. Whoever
// has the link can read them, so nothing in them is anyone's secret.
type claims struct {
	jwt.RegisteredClaims              // iss, aud, sub (the id), exp, iat, jti
	Method               string       `json:"m"`
	Kind                 app.LinkKind `json:"k"`
	File                 int          `json:"f,omitempty"`
	Filename             []byte       `json:"fn,omitempty"` // base64, as JSON would make some names six times as long
	ContentType          string       `json:"ct,omitempty"`
	Holder               string       `json:"h,omitempty"` // whose transfers it counts among; tells nobody who that is
}

// links signs and verifies.
type links struct {
	issuer   string
	kid      string // of the keys that sign
	get, put *verb
	holders  []byte // key that makes names of holders
	now      func() time.Time
}

// verb is what belongs to reading or to writing alone: a key for the one is
// none for the other.
type verb struct {
	audience string
	keys     map[string][]byte // by kid
	parser   *jwt.Parser
}

func newLinks(s *Secret, now func() time.Time) *links {
	return &links{
		issuer:  s.StoreID,
		kid:     s.newest().ID,
		get:     newVerb(s, audienceGet, now),
		put:     newVerb(s, audiencePut, now),
		holders: s.Derive("holders"),
		now:     now,
	}
}

func newVerb(s *Secret, audience string, now func() time.Time) *verb {
	v := &verb{audience: audience, keys: make(map[string][]byte)}
	for _, k := range s.Keys {
		v.keys[k.ID] = k.derive(s.StoreID, audience)
	}
	v.parser = jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
		jwt.WithExpirationRequired(),
		jwt.WithAudience(audience),
		jwt.WithIssuer(s.StoreID),
		jwt.WithIssuedAt(),
		jwt.WithStrictDecoding(),
		jwt.WithLeeway(leeway),
		jwt.WithTimeFunc(now),
	)
	return v
}

// verbOf gives the method of a kind of link, and what belongs to it.
func (l *links) verbOf(kind app.LinkKind) (method string, v *verb) {
	if kind == app.UploadPut {
		return http.MethodPut, l.put
	}
	return http.MethodGet, l.get
}

// holder names whoever asked for a link in a way that only this service can
// tell apart.
func (l *links) holder(of string) string {
	if of == "" {
		return ""
	}
	mac := hmac.New(sha256.New, l.holders)
	mac.Write([]byte(of))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:9])
}

// sign makes the path and query of a link. The name in the path is there for
// people and for tools that name a download after it; only the id counts.
func (l *links) sign(link app.Link) string {
	now := l.now()
	expires := link.Expires
	if latest := now.Add(MaxLinkLife); expires.After(latest) {
		expires = latest
	}
	method, v := l.verbOf(link.Kind)
	name := linkName(link.Filename)
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, &claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    l.issuer,
			Audience:  jwt.ClaimStrings{v.audience},
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
		Holder:      l.holder(link.Holder),
	})
	token.Header["kid"] = l.kid
	signed, err := token.SignedString(v.keys[l.kid])
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
