//go:build !race

package usage_test

const jobsPerWorker = 200
