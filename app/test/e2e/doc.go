// Package e2e contains only end-to-end tests. They build the real program once
// (harness_test.go), run it as a service and as users' and administrators' commands, and
// check behavior that involves more than one package. web/docs/rules.md lists the test of
// each rule of the API; testdata/bad has bad inputs for every algorithm.
//
// Many tests share two services, where each test has its own organizations
// (common_test.go). One starts jobs immediately; the other starts none.
package e2e
