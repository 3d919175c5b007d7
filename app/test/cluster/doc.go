// Package cluster starts a real Slurm cluster on this machine for tests: controller,
// accounting with its database, and nodes, all on 127.0.0.1. It needs root and the
// packages that .ci/slurm installs.
//
// The tests of a package share one cluster, because starting one takes ten seconds:
//
//	var daemons cluster.Shared
//
//	func TestMain(m *testing.M) {
//		code := m.Run()
//		if err := daemons.Close(); err != nil {
//			fmt.Fprintln(os.Stderr, err)
//			code = 1
//		}
//		os.Exit(code)
//	}
//
//	func TestSomething(t *testing.T) {
//		c := daemons.Start(t)
//		...
//	}
//
// A test that needs a different cluster starts its own with New.
package cluster
