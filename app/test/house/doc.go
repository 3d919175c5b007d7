// Package house tests which rooms may import which. ARCHITECTURE.md describes the rooms.
package house
