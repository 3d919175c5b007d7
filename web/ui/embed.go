// Package ui has the web application, which is part of the program; package static serves it. Node builds it
// (make ui); the built files are in git, so that nobody else needs Node.
package ui

import "embed"

// Built holds the built application in dist, and the page that stands for it where it was not built.
//
//go:embed all:dist fallback.html
var Built embed.FS
