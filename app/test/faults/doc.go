// Package faults contains only tests. They run the real program, inject faults, and check
// what survives: crashes, power failures, a full disk, failing system calls, too few file
// descriptors, and damaged files.
//
// The clients keep a ledger (ledger_test.go): they record each request before sending it,
// and each response when it arrives. A successful response is an acknowledgment. After
// each fault, the tests compare the service with the ledger (verify_test.go): no
// acknowledged change may be lost or made twice. Each job also writes a diary outside its
// directories (algorithm_test.go), which shows whether an attempt ran twice or two
// attempts overlapped. A ptrace-based tracer makes system calls fail or hang
// (inject_test.go).
//
// On a cluster (site_test.go), Slurm's controller, its accounting, nodes and sbatch can
// also fail (clusterfaults_test.go). When all jobs are finished, the job records, the
// diary, the results, the shared directory and Slurm must agree (inspect_test.go).
//
// By default, `go test` runs a short version of every campaign except power failures,
// which need a virtual machine. The long versions are:
//
//	go test ./app/test/faults -run Kills -kills 200 -v
//	go test ./app/test/faults -run AlignmentsSurviveKills -queries 200 -v
//	go test ./app/test/faults -run 'Replaced|Upgrade' -waiting 400 -replaced 20 -v
//	go test ./app/test/faults -run FailingCalls -positions 20 -v
//	go test ./app/test/faults -run PowerCuts -machine DIR -cuts 25 -v
//	go test ./app/test/faults -run OfTheCluster -rounds 50 -v
//	go test ./app/test/faults -run OnTheCluster -rows 10000 -given 20 -v
//
// -machine is a directory with a kernel and an initrd (.ci/powercut creates it); -seed
// repeats the random choices of an earlier run; -binary tests a molrun built elsewhere.
package faults
