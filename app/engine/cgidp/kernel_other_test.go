//go:build !amd64

package cgidp

func vectorLoops() []loops { return nil }
