// Package link signs and verifies links: URLs that allow one verb on one file for a
// limited time. A link contains a JWT (HS256). Its key is derived from the secret, which
// is a ring of keys in the data directory.
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

// Prefix is the path prefix of every link.
const Prefix = "/blobs/"

// MaxLifetime is the maximum lifetime of a link. A token that claims more is rejected, so a
// wrong clock cannot issue a link that is valid forever.
const MaxLifetime = 7 * 24 * time.Hour

const (
	maxToken     = 2 << 10 // bytes; longer tokens are rejected unread
	maxTokenName = 820     // bytes of a file name in a token; 200 characters and ".zip" fit
	leeway       = 5 * time.Second

	audienceGet = "blob-get"
	audiencePut = "blob-put"
)

// Signer signs and verifies links. It is safe for concurrent use.
type Signer struct {
	dir      string // directory of the secret
	now      func() time.Time
	changing sync.Mutex // guards the secret's file
	ring     atomic.Pointer[ring]
}

// ring holds the keys derived from one version of the secret. Download links and upload
// links have different keys.
type ring struct {
	issuer   string
	kid      string // ID of the signing keys
	get, put *verb
	holders  []byte               // key for the pseudonyms of holders
	revoked  map[string]time.Time // time of revocation, by the pseudonym of the holder
}

// verb is the common part of all links for one HTTP method. A PUT link also allows the
// methods that continue an upload: HEAD, PATCH, DELETE and OPTIONS.
type verb struct {
	method   string
	audience string
	keys     map[string][]byte // by kid
	parser   *jwt.Parser
}

// claims is the payload of a token. Anyone with the link can read it, so it contains no
// secrets.
type claims struct {
	jwt.RegisteredClaims              // iss, aud, sub (the ID), exp, iat, jti
	Milliseconds         int          `json:"ms,omitempty"` // milliseconds of iat, which has only seconds
	Method               string       `json:"m"`
	Kind                 app.LinkKind `json:"k"`
	File                 int          `json:"f,omitempty"`
	Inputs               bool         `json:"in,omitempty"`
	Filename             []byte       `json:"fn,omitempty"` // base64; JSON escapes could make a name six times longer
	ContentType          string       `json:"ct,omitempty"`
	Holder               string       `json:"h,omitempty"` // pseudonym of app.Link.Holder
}

// NewSigner returns a signer for the secret loaded from dir.
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

// Sign returns the path and query of a link. The file name in the path is for humans and
// for tools that name downloads after it; the ID determines the file.
func (s *Signer) Sign(link app.Link) string {
	ring, now := s.ring.Load(), s.now()
	expires := link.Expires
	if latest := now.Add(MaxLifetime); expires.After(latest) {
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
		panic("link: sign: " + err.Error()) // fails only for a key of the wrong type
	}
	return Prefix + link.ID + "/" + url.PathEscape(name) + "?token=" + signed
}

// tokenName returns the last element of a name, short enough for a token. It truncates at
// the front to keep the extension.
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

// holderPurpose is the purpose for which the keys of pseudonyms are derived.
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
