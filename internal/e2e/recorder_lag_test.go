package e2e

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// note keeps which version of an object was shown.
func (e *recorder) note(o client.Object, gone bool) {
	e.versions[o.GetUID()] = o.GetResourceVersion()
	if gone {
		delete(e.versions, o.GetUID())
	}
}

// catchUp waits until the watches have shown all that the API server has. They may be behind what the test has read in
// a list, by which it knows that it is time to ask the recorder.
func (e *recorder) catchUp() {
	e.w.Helper()
	e.w.eventually(e.behind)
}

// behind says what the watches have yet to show, or what the API server has changed since the lists here were made.
func (e *recorder) behind() string {
	now := map[types.UID]string{}
	for _, p := range e.w.pods() {
		now[p.UID] = p.ResourceVersion
	}
	for _, c := range e.w.claims() {
		now[c.UID] = c.ResourceVersion
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !maps.Equal(now, e.versions) {
		return fmt.Sprintf("the recorder has seen the versions %v of pods and claims, the API server has %v",
			e.versions, now)
	}
	return ""
}
