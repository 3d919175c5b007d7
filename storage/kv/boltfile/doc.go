// Package boltfile opens, copies and compacts the file of a bbolt database and
// keeps the files beside it. It refuses files that are unsafe to write: locked,
// damaged, truncated, replaced, or on a network file system. It knows no bucket
// but meta.
package boltfile
