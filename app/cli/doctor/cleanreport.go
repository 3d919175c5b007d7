package doctor

import (
	"regexp"
	"strings"
)

// privatePatterns holds patterns of private text that must never appear in a report, and
// their replacements.
var privatePatterns = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`molrun_[a-z]{12}_[0-9A-Za-z_]+`), "<key>"},
	{regexp.MustCompile(`eyJ[0-9A-Za-z_-]{6,}[0-9A-Za-z_.-]*`), "<token>"},
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s"',]+`), "$1 <secret>"},
	{regexp.MustCompile(`(?i)\b([a-z0-9_.-]*(?:password|passwd|secret|token|credential|api[_-]?key)[a-z0-9_.-]*)(["']?\s*[:=]\s*["']?)[^\s"'&,;]+`), "$1$2<secret>"},
	{regexp.MustCompile(`([a-z][a-z0-9+.-]*://)[^/\s"'@]+@`), "$1<secret>@"},
	{regexp.MustCompile(`[^\s"'<>()\[\],;:=/]+@[^\s"'<>()\[\],;:=/]+\.[^\s"'<>()\[\],;:=/]+`), "<email>"},
	{regexp.MustCompile(`(/home|/Users)/[^/\s"':,]+`), "$1/<user>"},
	{regexp.MustCompile(`\b(organization|user|email|name|key)="[^"]*"`), `$1="<private>"`},
	{regexp.MustCompile(`([a-z]+://(?:<secret>@)?)[^/\s"'<>:\[\]]*[a-zA-Z][^/\s"'<>:\[\]]*`), "$1<host>"},
}

// cleanReport removes keys, tokens, passwords, e-mail addresses, host names and home
// directories from text.
func cleanReport(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for _, p := range privatePatterns {
			line = p.what.ReplaceAllString(line, p.by)
		}
		b.WriteString(line)
	}
	return b.String()
}
