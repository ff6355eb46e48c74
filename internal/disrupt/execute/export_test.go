package execute

import "github.com/tenon-sh/tenon/internal/disrupt/disrupttest"

// InputOf is input for the tests that stand outside of the package, because they search.
func InputOf(f *disrupttest.Fleet) Input { return input(f) }
