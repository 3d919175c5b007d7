package blobs

import (
	"net/http"
	"path"
	"strings"
	"unicode"
)

// secureHeaders are set on every response under /blobs/, so that a file uploaded by one
// user never runs in the browser of another.
var secureHeaders = map[string]string{
	"X-Content-Type-Options":       "nosniff",
	"Content-Security-Policy":      "sandbox; default-src 'none'",
	"Cross-Origin-Resource-Policy": "same-site",
	"Cache-Control":                "private, no-store",
	"Referrer-Policy":              "no-referrer",
}

func setSecureHeaders(h http.Header) {
	for name, value := range secureHeaders {
		h.Set(name, value)
	}
}

const (
	plainText = "text/plain; charset=utf-8"
	anyBytes  = "application/octet-stream"
	svgImage  = "image/svg+xml"
)

// svgPolicy is the Content-Security-Policy of SVG files. They can contain scripts, which
// neither an <img> nor this policy runs, and embedded styles and images, which some
// browsers would otherwise omit.
const svgPolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"

// contentTypes maps file extensions to response types: text that browsers display as
// text, formats that cannot contain scripts, and SVG with its own policy. All other files
// are served as application/octet-stream.
var contentTypes = map[string]string{
	".json": "application/json", ".zip": "application/zip", ".gz": "application/gzip", ".tar": "application/x-tar",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".svg": svgImage,

	".txt": plainText, ".log": plainText, ".out": plainText, ".err": plainText, ".md": plainText,
	".csv": plainText, ".tsv": plainText, ".dat": plainText, ".xvg": plainText, ".jsonl": plainText,
	".fasta": plainText, ".fa": plainText, ".faa": plainText, ".fna": plainText, ".seq": plainText,
	".a2m": plainText, ".a3m": plainText, ".aln": plainText, ".sto": plainText, ".hhr": plainText,
	".pdb": plainText, ".pqr": plainText, ".cif": plainText, ".mmcif": plainText, ".gro": plainText,
	".mol": plainText, ".mol2": plainText, ".sdf": plainText, ".smi": plainText, ".xyz": plainText,
	".top": plainText, ".itp": plainText, ".mdp": plainText, ".ndx": plainText, ".inp": plainText,
	".toml": plainText, ".yaml": plainText, ".yml": plainText, ".ini": plainText,
}

// contentType returns the response type for a file name.
func contentType(filename string) string {
	if t, ok := contentTypes[strings.ToLower(path.Ext(filename))]; ok {
		return t
	}
	return anyBytes
}

// disposition returns the Content-Disposition that saves a download under its name: an
// ASCII name for old clients, and the exact name (RFC 6266).
func disposition(filename string) string {
	filename = cleanName(filename)
	return `attachment; filename="` + asciiName(filename) + `"; filename*=UTF-8''` + percentName(filename)
}

// cleanName replaces separators, control characters, and directional marks that make one
// name look like another.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r == '/', r == '\\', r == unicode.ReplacementChar, unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return '_'
		}
		return r
	}, name)
	if strings.Trim(name, ".") == "" {
		return "download"
	}
	return name
}

// asciiName replaces characters that a quoted string cannot contain, and the percent
// sign, which some clients decode.
func asciiName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, name)
}

// percentName escapes all characters except the unreserved ones of RFC 3986.
func percentName(name string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hexDigits[c>>4])
		b.WriteByte(hexDigits[c&15])
	}
	return b.String()
}
