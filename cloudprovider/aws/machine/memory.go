package machine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// forgetAfter is how long what a node showed is believed without another node to confirm it.
const forgetAfter = 60 * 24 * time.Hour

// Memory remembers how much memory nodes of an instance type with an image really have, as the kubelet reports it. The
// estimate that it replaces is off by up to a tenth in both directions, which on a large node is many pods. It is safe
// for concurrent use. What it holds is learnt anew from the nodes that are there after a restart.
type Memory struct {
	now func() time.Time

	mu       sync.Mutex
	seen     map[kind]sighting
	revision uint64
}

// kind is what nodes with the same amount of memory have in common.
type kind struct{ instanceType, imageID string }

type sighting struct {
	bytes int64
	last  time.Time
}

// NewMemory remembers nothing yet.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, seen: map[kind]sighting{}}
}

// Learn takes in the memory capacity of a node. Machines of one type differ by a few pages; the least counts, so that a
// pod that was promised room on one finds it on all.
func (m *Memory) Learn(instanceType, imageID string, capacity resource.Quantity) {
	if instanceType == "" || imageID == "" || capacity.Sign() <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k, now := kind{instanceType, imageID}, m.now()
	have, known := m.seen[k]
	bytes := capacity.Value()
	if known && now.Sub(have.last) < forgetAfter && have.bytes <= bytes {
		bytes = have.bytes
	}
	if !known || bytes != have.bytes {
		m.revision++
	}
	m.seen[k] = sighting{bytes: bytes, last: now}
}

// Of is the memory that nodes of the type with the image have, in bytes; false if none was seen in a long time.
func (m *Memory) Of(instanceType, imageID string) (int64, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.seen[kind{instanceType, imageID}]
	if !ok || m.now().Sub(s.last) >= forgetAfter {
		return 0, false
	}
	return s.bytes, true
}

// Revision changes when Of would answer otherwise than before.
func (m *Memory) Revision() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, s := range m.seen {
		if m.now().Sub(s.last) >= forgetAfter {
			delete(m.seen, k)
			m.revision++
		}
	}
	return m.revision
}
