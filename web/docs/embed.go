// Package docs embeds the documentation in the program, so that it is available offline.
// Package static serves it.
package docs

import "embed"

// Pages holds the Markdown of the pages, and their pictures.
//
//go:embed *.md pictures
var Pages embed.FS
