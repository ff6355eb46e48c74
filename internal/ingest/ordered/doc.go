// Package ordered has maps that are handed out in order, or as they are, without being copied each time.
//
// Floor 3: values only.
package ordered
