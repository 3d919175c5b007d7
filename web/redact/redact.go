// Package redact makes text that clients choose fit for messages and logs.
package redact

import (
	"regexp"
	"strings"
)

// Clip shortens s to about 200 bytes.
func Clip(s string) string {
	if len(s) <= 200 {
		return s
	}
	return strings.ToValidUTF8(s[:200], "") + "…"
}

// secret matches an API key or a JSON Web Token, or what looks like one.
var secret = regexp.MustCompile(`molrun_[a-z]{12}_[0-9A-Za-z_]+|eyJ[0-9A-Za-z_.-]+`)

// shared matches the path of a share; its token begins with the share's ID, which is
// no secret.
var shared = regexp.MustCompile(`(/shared/[^/]{0,26})[^/]*`)

// ForLog shortens s and removes what could be a key or a token.
func ForLog(s string) string {
	if strings.Contains(s, "/shared/") {
		s = shared.ReplaceAllString(s, "$1…")
	}
	s = Clip(s)
	if !strings.Contains(s, "molrun_") && !strings.Contains(s, "eyJ") {
		return s
	}
	return secret.ReplaceAllString(s, "…")
}
