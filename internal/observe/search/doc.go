// Package search keeps what the last search for cheaper nodes came to, and says in words why each node stays.
//
// Floor 3: values that never change; those who tell of a search read them.
package search
