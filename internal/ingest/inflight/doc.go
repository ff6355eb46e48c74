// Package inflight keeps the commands that are under way: begun and not done, or done and not shown by the watch; and
// those that have failed, with the time of their next try.
//
// Floor 3: it has no lock and no clock, and finds objects by a function that it is given.
package inflight
