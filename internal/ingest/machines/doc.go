// Package machines reads Nodes and NodeClaims, and tells what it means to a plan that one looks otherwise than before.
//
// Floor 3: functions over objects; it remembers nothing.
package machines
