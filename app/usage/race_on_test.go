//go:build race

package usage_test

// jobsPerWorker is less where everything takes ten times as long.
const jobsPerWorker = 20
