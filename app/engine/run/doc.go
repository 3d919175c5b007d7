// Package run computes the replicas of simulated systems, as many in parallel as there
// are workers. It reports progress and writes intermediate results and checkpoints. A
// killed run resumes from its checkpoint, with the same results as an uninterrupted one.
package run
