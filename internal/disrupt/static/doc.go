// Package static keeps the number of nodes that static pools ask for.
//
// Floor 2: pure.
package static
