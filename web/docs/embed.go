// Package docs has the documentation, which is part of the program, so that a site without the Internet has it.
// Package static serves it.
package docs

import "embed"

// Pages holds the Markdown of the pages, and their pictures.
//
//go:embed *.md pictures
var Pages embed.FS
