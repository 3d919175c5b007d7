package link

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"strings"
	"testing"
	"time"

	"molrun/app/base/fault"
	"molrun/app/test/must"
)

// writer builds tokens by hand from the JSON of their parts, because no JWT library would
// produce these. Most are signed with the right key.
type writer struct {
	t               *testing.T
	key             []byte
	header, payload string // JSON of a valid token
}

func macOf(h func() hash.Hash, key []byte) func(string) []byte {
	return func(text string) []byte {
		mac := hmac.New(h, key)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
}

func inBase64(text []byte) string { return base64.RawURLEncoding.EncodeToString(text) }

func signedBy(header, payload string, sign func(text string) []byte) string {
	text := inBase64([]byte(header)) + "." + inBase64([]byte(payload))
	return text + "." + inBase64(sign(text))
}

func (w writer) signed(header, payload string) string {
	return signedBy(header, payload, macOf(sha256.New, w.key))
}

// with adds or changes a member of a JSON object. It keeps the order of the members, so
// that the change is the only difference.
func (w writer) with(object, member, value string) string {
	w.t.Helper()
	var members map[string]json.RawMessage
	must.OK(w.t, json.Unmarshal([]byte(object), &members))
	old, there := members[member]
	if !there {
		return strings.TrimSuffix(object, "}") + fmt.Sprintf(`,%q:%s}`, member, value)
	}
	changed := strings.Replace(object, fmt.Sprintf("%q:%s", member, old), fmt.Sprintf("%q:%s", member, value), 1)
	if changed == object {
		w.t.Fatalf("%s of %s did not change", member, object)
	}
	return changed
}

func (w writer) claim(member, value string) string {
	return w.signed(w.header, w.with(w.payload, member, value))
}

func (w writer) head(member, value string) string {
	return w.signed(w.with(w.header, member, value), w.payload)
}

func TestTokensWrittenByHandAreRefused(t *testing.T) {
	s, _ := newSigner(t)
	path, token, _ := strings.Cut(getLink(s, time.Hour), "?token=")
	parts := strings.Split(token, ".")
	ring := s.ring.Load()
	w := writer{t: t, key: ring.get.keys[ring.kid]}
	for i, into := range []*string{&w.header, &w.payload} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		must.OK(t, err)
		*into = string(text)
	}
	if again := w.signed(w.header, w.payload); again != token {
		t.Fatalf("written by hand, the token is %s, not %s, so the test proves nothing", again, token)
	}
	none := func(string) []byte { return nil }
	own := []byte("0123456789abcdef0123456789abcdef")
	jwk := fmt.Sprintf(`{"kty":"oct","k":%q}`, inBase64(own))
	for name, token := range map[string]string{
		"algorithm None":                   signedBy(w.with(w.header, "alg", `"None"`), w.payload, none),
		"algorithm nOnE with a signature":  w.head("alg", `"nOnE"`),
		"algorithm HS384":                  signedBy(w.with(w.header, "alg", `"HS384"`), w.payload, macOf(sha512.New384, w.key)),
		"key of the forger":                signedBy(w.header, w.payload, macOf(sha256.New, own)),
		"key of uploads":                   signedBy(w.header, w.payload, macOf(sha256.New, ring.put.keys[ring.kid])),
		"kid a device":                     w.head("kid", `"/dev/null"`),
		"header jwk with its signature":    signedBy(w.with(w.header, "jwk", jwk), w.payload, macOf(sha256.New, own)),
		"header jku":                       w.head("jku", `"https://attacker.example/keys"`),
		"header crit":                      w.head("crit", `["exp"]`),
		"header b64 and crit":              w.signed(w.with(w.with(w.header, "b64", "false"), "crit", `["b64"]`), w.payload),
		"header of another type":           w.head("typ", `"at+jwt"`),
		"header with alg twice":            w.signed(`{"alg":"none",`+w.header[1:], w.payload),
		"header with spaces":               w.signed(strings.Replace(w.header, ":", ": ", 1), w.payload),
		"audience twice":                   w.claim("aud", fmt.Sprintf("[%q,%[1]q]", audienceGet)),
		"expiry a text":                    w.claim("exp", `"99999999999"`),
		"expiry at the end of time":        w.claim("exp", "9223372036854775807"),
		"subject a path":                   w.claim("sub", `"../secret"`),
		"method any":                       w.claim("m", `"*"`),
		"claim unknown":                    w.claim("admin", `true`),
		"claim twice":                      w.signed(w.header, `{"sub":"00000000010000000000000000",`+w.payload[1:]),
		"claim in upper case":              w.signed(w.header, strings.Replace(w.payload, `"sub"`, `"SUB"`, 1)),
		"claims and another document":      w.signed(w.header, w.payload+"{}"),
		"claims not UTF-8":                 w.signed(w.header, strings.Replace(w.payload, "GET", "G\xffT", 1)),
		"signature in the other alphabet":  parts[0] + "." + parts[1] + "." + base64.StdEncoding.EncodeToString(macOf(sha256.New, w.key)(parts[0]+"."+parts[1])),
		"parts too many":                   token + "." + parts[2],
		"token with a space before":        "%20" + token,
		"token with a NUL":                 token + "%00",
		"token with a letter like another": strings.Replace(token, "e", "%D0%B5", 1),
		"token percent-encoded":            "%65" + token[1:],
		"token's dots percent-encoded":     strings.ReplaceAll(token, ".", "%2E"),
		"token behind Bearer":              "Bearer%20" + token,
	} {
		verify(t, s, name, "GET", path+"?token="+token, fault.LinkInvalid)
	}
}
