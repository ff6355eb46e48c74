// Package archtest holds the rules of ARCHITECTURE.md as tests, each with its reason. It has no code of its own.
package archtest
