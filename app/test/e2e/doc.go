// Package e2e contains only tests. They start the real program, built once for all of them
// (harness_test.go), as a service, as commands of users and as commands of operators, and
// check what one package alone cannot show. web/docs/rules.md says which test checks which
// rule of the API; testdata/bad has the bad inputs of every algorithm.
//
// Many tests share two services, each with organizations of its own (common_test.go): on
// one jobs start at once, on the other none does.
package e2e
