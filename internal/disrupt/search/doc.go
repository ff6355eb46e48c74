// Package search looks at all candidates for a cheaper way to run their pods.
//
// Floor 2: pure.
package search
