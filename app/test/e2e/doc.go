// Package e2e contains only tests. They start the real program, built once for all of
// them (harness_test.go), as a service, as commands of users and as commands of
// operators, and check what no single package can show. web/docs/rules.md lists which
// test checks which rule of the API; testdata/bad has the bad inputs of every algorithm.
//
// Many tests share two services, each test with its own organizations (common_test.go):
// on one, jobs start immediately; on the other, none starts.
package e2e
