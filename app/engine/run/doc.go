// Package run computes the replicas of simulated systems: as many at once as there are workers,
// with lines of progress, results so far, and checkpoints, from which a run goes on after it
// was killed, with the results of one that was not.
package run
