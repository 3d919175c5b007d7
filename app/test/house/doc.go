// Package house tests that every package is in a room and imports only its own room and those
// above it. The order is in house_test.go, and ARCHITECTURE.md describes the rooms.
package house
