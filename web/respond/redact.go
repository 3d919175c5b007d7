package respond

import (
	"regexp"
	"strings"
)

// Clip shortens text of a client, s, for messages to about 200 bytes.
func Clip(s string) string {
	if len(s) <= 200 {
		return s
	}
	return strings.ToValidUTF8(s[:200], "") + "…"
}

// secretPattern matches an API key or a JSON Web Token, or what looks like one.
var secretPattern = regexp.MustCompile(`molrun_[a-z]{12}_[0-9A-Za-z_]+|eyJ[0-9A-Za-z_.-]+`)

// sharePattern matches the path of a share; its token begins with the share's ID, which is
// no secret.
var sharePattern = regexp.MustCompile(`(/shared/[^/]{0,26})[^/]*`)

// Redact shortens s and removes what could be a key or a token.
func Redact(s string) string {
	if strings.Contains(s, "/shared/") {
		s = sharePattern.ReplaceAllString(s, "$1…")
	}
	s = Clip(s)
	if !strings.Contains(s, "molrun_") && !strings.Contains(s, "eyJ") {
		return s
	}
	return secretPattern.ReplaceAllString(s, "…")
}
