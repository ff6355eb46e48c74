// Package decode turns what the API server stores into what is kept of it: it drops what nothing reads, reads objects
// of which parts don't fit their type, and converts single values of the API.
//
// Floor 3: functions only; it remembers nothing.
package decode
