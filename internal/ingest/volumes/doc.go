// Package volumes finds out what the volumes of pods ask of nodes: where they are or can be made, how many a node can
// attach, and which are attached.
//
// Floor 3: it keeps Kubernetes' storage objects, has no lock and no clock, and knows no node.
package volumes
