// Package faults holds tests alone: they run the real program, do to it what
// happens to servers, and look at what is left. A crash, a power cut, a full
// disk, a system call that fails, too few descriptors, a damaged file.
//
// A ledger (ledger_test.go) is written by the clients: each request before it
// is sent, each answer once it is there. What was answered with success was
// promised. After each fault, what the service holds is compared with it
// (verify_test.go): nothing promised may be lost or doubled. Jobs keep a diary
// outside of their directories (algorithm_test.go), which shows whether an
// attempt ran twice or two ran at once. System calls are made to fail, or
// never to return, by a tracer of the tests' own (inject_test.go).
//
// On a cluster (site_test.go) there are more who can fail: Slurm's controller,
// its accounting, nodes, sbatch, and the service at the worst moment
// (strikes_test.go). When all jobs have ended, records, diary, results, shared
// folder and Slurm have to agree (settled_test.go).
//
// Plain `go test` runs a short form of every campaign but power cuts, which want
// a virtual machine. At length:
//
//	go test ./app/faults -run Kills -kills 200 -v
//	go test ./app/faults -run FailingCalls -positions 20 -v
//	go test ./app/faults -run PowerCuts -machine DIR -cuts 25 -v
//	go test ./app/faults -run OfTheCluster -rounds 50 -v
//	go test ./app/faults -run OnTheCluster -rows 10000 -v
//
// -machine names a directory with kernel and initrd (.ci/powercut makes it);
// -seed repeats the choices of a run; -binary tests another molrun than this
// source's.
package faults
