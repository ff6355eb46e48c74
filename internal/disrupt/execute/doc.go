// Package execute takes each move from its fences over its replacements to its departure, or gives it up, by what the
// claims show; and it lets the nodes go that the cloud takes away.
//
// Floor 2: pure.
package execute
