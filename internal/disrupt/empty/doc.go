// Package empty removes nodes that carry no workload, and opens nodes again that were fenced in vain.
//
// Floor 2: pure.
package empty
