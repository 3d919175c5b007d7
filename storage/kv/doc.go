// Package kv keeps tables of records in one bbolt file: group commit, buckets
// that follow from records (indexes and sums), migrations, checks and repair.
// It knows the IDs of package app, but no job: what a database holds, a Schema
// says.
package kv
