// Package pods reads single things of pods and of what owns them, tells what a pod's change means to a plan, and knows
// when pods cease to be protected and for which nodes they are nominated.
//
// Floor 3: small structs without a lock and a clock.
package pods
