// Package run computes the replicas of simulated systems: as many at once as there are workers,
// with lines of progress, results so far, and checkpoints, from which a run is resumed after it
// was killed, with the results of one that was not.
package run
