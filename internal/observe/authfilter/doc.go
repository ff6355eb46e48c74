// Package authfilter asks the API server whether whoever reads metrics may.
//
// Floor 3: it knows HTTP and the API server, and nothing of what is served.
package authfilter
