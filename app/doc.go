// Package app is the domain of molrun: what jobs, uploads and API keys are, and
// every rule about them. It knows no technology. It defines the interfaces [Store],
// [Blobs] and [Executor], and never sees who implements them.
//
// [Service] groups the use cases by noun: [Jobs], [Algorithms], and [Runs],
// the runner's side. A use case is one method; it opens one transaction of the store
// and holds the rule. What they share is core. Records are in the files of their nouns
// (job.go, upload.go), use cases in those of their verbs (submit.go, change.go,
// delete.go, log.go); plan.go checks a submission, estimate.go says how it would fare.
//
// Jobs that wait for jobs, batches, retries and deletion change one another's records in
// one transaction, so their rules stay together. Use cases that do not change
// other jobs are in app/job. ARCHITECTURE.md says where a new thing goes.
package app
