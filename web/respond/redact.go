package respond

import (
	"regexp"
	"strings"
)

// Clip shortens client text to about 200 bytes, for messages.
func Clip(s string) string {
	if len(s) <= 200 {
		return s
	}
	return strings.ToValidUTF8(s[:200], "") + "…"
}

// secretPattern matches API keys, JSON Web Tokens, and similar text.
var secretPattern = regexp.MustCompile(`molrun_[a-z]{12}_[0-9A-Za-z_]+|eyJ[0-9A-Za-z_.-]+`)

// sharePattern matches the path of a share. A share's token begins with its ID, which is
// not secret.
var sharePattern = regexp.MustCompile(`(/shared/[^/]{0,26})[^/]*`)

// Redact shortens s and removes text that could be a key or a token.
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
