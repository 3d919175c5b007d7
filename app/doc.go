// Package app is the domain of molrun: what jobs, uploads, algorithms and API
// keys are, and every rule about them. It knows no technology. It defines the
// interfaces [Store], [Blobs] and [Executor], and never sees who implements
// them.
//
// # Words
//
// An organization owns everything; a [Caller] is the user of an [APIKey] who
// asks. An [Algorithm] is a simulation on offer, one TOML file; an engine is
// code of this program that computes one. An algorithm declares parameters,
// settings are the values given for them. A [Submission] is a request to queue
// a [Job], which has a unique name. A batch is a job made of subjobs, its rows.
// An attempt is one try at a job. An [Upload] is a file given by a user: pending,
// then complete. A result is what a user downloads of a completed job, by a
// [Link]: a signed URL that allows one verb on one thing until a time.
//
// The runner decides what runs next, an executor is where it runs: it is given
// a [Task] and gives back a [Handle]; an [Outcome] says how the task ended. A
// sweep removes files that no record names. A page is part of a listing, a
// cursor where the next begins.
//
// # Where things are
//
// [Service] has one method for each use case: the method opens one transaction
// of the store and holds the rule. Records are in the files of their nouns
// (job.go, upload.go, account.go), use cases in those of their verbs (submit.go,
// list.go, cancel.go, result.go). What checks a submission is order.go, what the
// runner tells the service attempt.go. Files that begin with algorithm_ read
// algorithm files, check settings and make commands; json.go and canonical.go
// read JSON exactly. Errors carry a [Code].
//
// The other packages:
//
//	molrun/storage                     Store: records, in one bbolt file
//	molrun/blobs                       Blobs: files, and links to them over HTTP
//	molrun/blobs/link                  signs and verifies links; keeps the secret
//	molrun/blobs/result                manifests, files and archives of results
//	molrun/app/durable                     files that survive a crash whole or not at all
//	molrun/web                         the API: requests in, one method of Service, answers out
//	molrun/web/client                  the API seen from its other end
//	molrun/web/contract                holds the API to openapi.yaml in tests
//	molrun/app/runner                  starts jobs in fair order, watches and collects them
//	molrun/app/executor/local          Executor: processes of this machine
//	molrun/app/executor/slurm          Executor: jobs of a Slurm cluster
//	molrun/app/executor/conformance    tests that every executor passes
//	molrun/app/executor/slurm/cluster  a real Slurm cluster on one machine, for tests
//	molrun/app/bench                   a program of its own: measures molrun next to limits and peers
//	molrun/app/faults                  tests: the real program, killed, starved and lied to
//	molrun/app/simulation              tests: whole services driven by random seeds
//	molrun/app/task                    runs one attempt: task.json in, outcome.json out
//	molrun/app/task/start              the command that does it, fast to start
//	molrun/app/task/process            finds, limits and kills the processes of a task
//	molrun/app/task/sandbox            the bubblewrap sandbox of a task's programs
//	molrun/app/protocol                what the service and its tasks tell one another
//	molrun/app/algorithms              the algorithm files that are built in, and the site's
//	molrun/app/engine/cgidp            the engine of cg-idp: settings in, files of results out
//	molrun/app/engine/cgidp/md         its physics: model, forces, dynamics and averages
//	molrun/app/engine/cgidp/sequence   reads and checks protein sequences
//	molrun/app/engine/cgidp/plot       draws its results
//	molrun/app/engine/cgidp/cgidptest  proteins and helpers for its tests
//	molrun/app/cli                     commands; joins all of the above
//
// Imports point at app: storage, blobs, web and executors know only it and what
// is below them (executors also package task), and never one another. Only
// app/cli knows all. Package task knows package protocol alone, so that its
// process starts fast.
// Imports point at app: storage, blobs, web and executors know only it (executors
// also package task), and never one another. Only app/cli knows all. Package task
// knows its own parts and package protocol alone, so that its process starts fast.
package app
