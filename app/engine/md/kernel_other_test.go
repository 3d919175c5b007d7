//go:build !amd64

package md

func vectorLoops() []loops { return nil }
