// Package link signs and verifies links: URLs that allow one verb on one file
// until a time. A link carries a JWT (HS256). Its key is derived from the
// secret, which is a ring of keys in the data directory.
package link

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"path"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"molrun/app"
)

// Prefix begins the path of every link.
const Prefix = "/blobs/"

// MaxLife is the longest time for which a link works. A token that claims more
// is refused, so a wrong clock cannot issue a link that works forever.
const MaxLife = 7 * 24 * time.Hour

const (
	maxToken     = 2 << 10 // bytes; longer tokens are refused unread
	maxTokenName = 820     // bytes of a file name within a token; 200 characters and ".zip" fit
	leeway       = 5 * time.Second

	audienceGet = "blob-get"
	audiencePut = "blob-put"
)

// Signer signs and verifies links. It is safe for concurrent use.
type Signer struct {
	dir      string // of the secret
	now      func() time.Time
	changing sync.Mutex // of the secret's file
	ring     atomic.Pointer[ring]
}

// ring is the keys derived from one version of the secret. Links that read and
// links that write have different keys.
type ring struct {
	issuer   string
	kid      string // of the keys that sign
	get, put *verb
	holders  []byte               // key that hides who holds a link
	revoked  map[string]time.Time // when links were revoked, by the pseudonym of their holder
}

// verb is what links of one HTTP method share. A link to PUT a file also allows what
// it takes to go on with it: HEAD, PATCH, DELETE and OPTIONS.
type verb struct {
	method   string
	audience string
	keys     map[string][]byte // by kid
	parser   *jwt.Parser
}

// claims is the payload of a token. Anybody with the link can read it, so it
// contains no secrets.
type claims struct {
	jwt.RegisteredClaims              // iss, aud, sub (the ID), exp, iat, jti
	Milliseconds         int          `json:"ms,omitempty"` // of iat, which has only seconds
	Method               string       `json:"m"`
	Kind                 app.LinkKind `json:"k"`
	File                 int          `json:"f,omitempty"`
	Inputs               bool         `json:"in,omitempty"`
	Filename             []byte       `json:"fn,omitempty"` // base64; JSON escapes would make some names six times longer
	ContentType          string       `json:"ct,omitempty"`
	Holder               string       `json:"h,omitempty"` // pseudonym of app.Link.Holder
}

// NewSigner returns a signer for the secret that was loaded from dir.
func NewSigner(dir string, s *Secret, now func() time.Time) *Signer {
	signer := &Signer{dir: dir, now: now}
	signer.ring.Store(newRing(s, now))
	return signer
}

func newRing(s *Secret, now func() time.Time) *ring {
	newVerb := func(method, audience string) *verb {
		v := &verb{method: method, audience: audience, keys: make(map[string][]byte)}
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
	return &ring{
		issuer:  s.StoreID,
		kid:     s.newest().ID,
		get:     newVerb(http.MethodGet, audienceGet),
		put:     newVerb(http.MethodPut, audiencePut),
		holders: s.Derive(holderPurpose),
		revoked: s.revocations(),
	}
}

// verb returns the verb that a kind of link allows.
func (r *ring) verb(kind app.LinkKind) *verb {
	if kind == app.UploadPut {
		return r.put
	}
	return r.get
}

// Sign returns the path and query of a link. The file name in the path is for
// people and for tools that name a download after it; the ID decides which
// file is meant.
func (s *Signer) Sign(link app.Link) string {
	ring, now := s.ring.Load(), s.now()
	expires := link.Expires
	if latest := now.Add(MaxLife); expires.After(latest) {
		expires = latest
	}
	issued := link.Issued
	if issued.IsZero() {
		issued = now
	}
	verb := ring.verb(link.Kind)
	name := tokenName(link.Filename)
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, &claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer:    ring.issuer,
			Audience:  jwt.ClaimStrings{verb.audience},
			Subject:   link.ID,
			ExpiresAt: jwt.NewNumericDate(expires),
			IssuedAt:  jwt.NewNumericDate(issued),
			ID:        rand.Text(),
		},
		Milliseconds: issued.Nanosecond() / int(time.Millisecond),
		Method:       verb.method,
		Kind:         link.Kind,
		File:         link.File,
		Inputs:       link.Inputs,
		Filename:     []byte(name),
		ContentType:  link.ContentType,
		Holder:       pseudonym(ring.holders, link.Holder),
	})
	token.Header["kid"] = ring.kid
	signed, err := token.SignedString(verb.keys[ring.kid])
	if err != nil {
		panic("link: sign: " + err.Error()) // only a key of the wrong type can fail
	}
	return Prefix + link.ID + "/" + url.PathEscape(name) + "?token=" + signed
}

// tokenName returns the last part of a name, short enough for a token. It cuts
// at the front to keep the extension.
func tokenName(name string) string {
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

// holderPurpose derives the keys of pseudonyms.
const holderPurpose = "holders"

// pseudonym identifies a holder without revealing who it is.
func pseudonym(key []byte, holder string) string {
	if holder == "" {
		return ""
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(holder))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:9])
}
