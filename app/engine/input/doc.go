// Package input reads the settings of an engine and collects all that is wrong with them
// in words for the user.
package input
