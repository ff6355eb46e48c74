// Package apitest holds the tests of the API that need a real API server: what it refuses and in which words, what it
// fills in, what it lets change, and how kubectl sees it. They are in one package, so that one lab serves them all.
// There is no code here but tests.
package apitest
