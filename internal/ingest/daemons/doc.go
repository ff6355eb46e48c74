// Package daemons finds out what DaemonSets will put on every node that they match: from their templates, from what the
// API server adds to them, and from their newest pods.
//
// Floor 3: it keeps Kubernetes' objects, has no lock and no clock.
package daemons
