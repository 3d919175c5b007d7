// Package ui embeds the web application in the program; package static serves it. make ui
// builds it with Node. The built files are in git, so that only those who change the
// application need Node.
package ui

import "embed"

// Built holds the built application in dist, and a page to show instead if it was not
// built.
//
//go:embed all:dist fallback.html
var Built embed.FS
