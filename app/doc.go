// Package app is the domain of molrun: jobs, uploads, API keys and every rule about them.
// It is independent of any technology. It defines the interfaces [Store], [Blobs] and
// [Executor] and does not depend on their implementations.
//
// [Service] groups the use cases by noun: [Jobs], [Algorithms], and [Runs], the runner's
// side. A use case is one method; it opens one transaction of the store and enforces the
// rule. Shared state is in core. Records are in files named after nouns (job.go,
// upload.go), use cases in files named after verbs (submit.go, change.go, delete.go,
// log.go); plan.go validates a submission, estimate.go estimates its resources and times.
//
// Dependencies between jobs, batches, retries and deletion change one another's records
// in one transaction, so their rules stay together. Use cases that do not change other
// jobs are in app/job. ARCHITECTURE.md describes where new code belongs.
package app
