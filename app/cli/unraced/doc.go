// Package unraced lets the tests of molrun's commands run under the race detector
// without slowing down the jobs. What runs an attempt, a task or an engine, is a
// process of its own in which there is little to race and much to compute: under the
// detector it takes ten times as long. A test binary that imports this package becomes
// the program that Build has made once it is started as one of those. Other processes may
// use that program from the start: under the detector molrun takes three times as long to
// begin.
package unraced
