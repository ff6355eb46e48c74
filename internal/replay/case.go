// Package replay writes down everything that a plan depends on, so that the same plan can be made again elsewhere and
// later, and reads it back. A file of it is called a snapshot file.
//
// Floor 3: it knows the values of the floors below and their form in a file. It writes to the folder that it is given
// and to nothing else.
//
// # The format
//
// A snapshot file is one JSON document, compressed with gzip: format and version, tables, and the case. Values that are
// shared stand in a table once, by type, and are named by their place in it: a pod's class, a class's rules, a pool's
// catalog, labels. Tables stand in an order in which each needs only those before it. A field that has its zero value
// is left out. Field names are those of the types of package cluster; testdata/schema.txt lists them, and a test
// compares.
//
// A field that is added needs no new version: a file without it has its zero value, and a program that does not know it
// says so. A field that is renamed, removed or gets another meaning needs one.
package replay

import (
	"time"

	"github.com/tenon-sh/tenon/internal/cluster"
	"github.com/tenon-sh/tenon/internal/disrupt"
	"github.com/tenon-sh/tenon/internal/plan"
)

const (
	// Format and Version are how each file begins.
	Format  = "tenon-snapshot"
	Version = 4
)

// Step is what the planner was asked for.
type Step string

// The steps.
const (
	Make   Step = "make"   // plan.Make on Snapshot, with what a search had found
	Search Step = "search" // plan.Search on Snapshot
	Check  Step = "check"  // plan.Make on Snapshot, then plan.Check on Newer
)

// Case is one question to the planner, with everything that its answer depends on.
type Case struct {
	// Engine is the version of the program that wrote it; Taken is when.
	Engine string
	Taken  time.Time
	Step   Step
	// Panic is what the planner failed with, and Stack is where; both are empty if it did not.
	Panic, Stack string
	Policy       plan.Policy
	Snapshot     *cluster.Snapshot
	// Newer is the snapshot that the plan was checked on.
	Newer *cluster.Snapshot
	// Found is what a search had found before.
	Found *disrupt.Proposal
}
