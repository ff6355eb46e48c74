// Package machines is the cloud itself, which in real life is behind a network and outlives the controller: here a
// folder with a file for each machine. A provider of yours has its cloud's library in place of it.
package machines

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Machine is one that runs.
type Machine struct {
	// Name is given by who starts it. There is one machine of a name.
	Name string
	// Order is what it is.
	Order Order
	// Tags are whatever who starts it wants to find again.
	Tags map[string]string
	// Started is set by the fleet.
	Started time.Time
}

// Order is what can be bought: a shape of machine, in a zone, on terms.
type Order struct{ Shape, Zone, Terms string }

// ErrSoldOut says that the fleet has no machine of that kind left.
var ErrSoldOut = errors.New("sold out")

// Fleet has machines.
type Fleet struct {
	dir string

	mu      sync.Mutex
	soldOut map[Order]bool
}

// Open returns the fleet whose machines are in a folder.
func Open(dir string) (*Fleet, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the fleet: %w", err)
	}
	return &Fleet{dir: dir, soldOut: map[Order]bool{}}, nil
}

// Start starts a machine, unless there is one of its name. It returns the one that is there.
func (f *Fleet) Start(m Machine) (*Machine, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if there, err := f.Get(m.Name); there != nil || err != nil {
		return there, err
	}
	if f.soldOut[m.Order] {
		return nil, ErrSoldOut
	}
	m.Started = time.Now().UTC().Round(time.Second)
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("starting machine %s: %w", m.Name, err)
	}
	half := filepath.Join(f.dir, m.Name+".half") // a process that dies leaves no half of a machine
	if err := errors.Join(os.WriteFile(half, text, 0o600), os.Rename(half, f.file(m.Name))); err != nil {
		return nil, fmt.Errorf("starting machine %s: %w", m.Name, err)
	}
	return &m, nil
}

// Get returns the machine of a name; nil if there is none.
func (f *Fleet) Get(name string) (*Machine, error) {
	if name == "" || strings.ContainsAny(name, `/\`) {
		return nil, nil
	}
	text, err := os.ReadFile(f.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting machine %s: %w", name, err)
	}
	m := &Machine{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("getting machine %s: %w", name, err)
	}
	return m, nil
}

// List returns all machines, by name.
func (f *Fleet) List() ([]*Machine, error) {
	files, err := filepath.Glob(f.file("*"))
	if err != nil {
		return nil, fmt.Errorf("listing machines: %w", err)
	}
	var out []*Machine
	for _, file := range files {
		m, err := f.Get(strings.TrimSuffix(filepath.Base(file), ".json"))
		if err != nil {
			return nil, err
		}
		if m != nil { // it may have been stopped meanwhile
			out = append(out, m)
		}
	}
	return out, nil
}

// Stop ends a machine. It is no error if there is none.
func (f *Fleet) Stop(name string) error {
	if err := os.Remove(f.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stopping machine %s: %w", name, err)
	}
	return nil
}

// SellOut has the fleet refuse orders from now on.
func (f *Fleet) SellOut(orders ...Order) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range orders {
		f.soldOut[o] = true
	}
}

func (f *Fleet) file(name string) string { return filepath.Join(f.dir, name+".json") }
