//go:build !race

package storage

const checked = false
