// Package apiserver knows what is particular about the API server as a source: which of its lists are current, and what
// time it is there.
//
// Floor 3: it reads answers of the API server; it never writes.
package apiserver
