//go:build !amd64

package md

func vectorLoops() []loops { return nil }

func hasVectorLoops32() bool { return false }
