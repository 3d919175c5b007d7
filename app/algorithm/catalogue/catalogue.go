// Package catalogue embeds the algorithms that come with molrun and need other programs: a
// folder for each type.
package catalogue

import "embed"

// Files has a folder for each type, named after it.
//
//go:embed */*
var Files embed.FS
