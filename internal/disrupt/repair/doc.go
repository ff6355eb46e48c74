// Package repair finds nodes that are unhealthy for so long that they are to be replaced.
//
// Floor 2: pure.
package repair
