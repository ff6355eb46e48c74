// Package disrupttest makes small clusters for the tests of package disrupt and of those below it.
package disrupttest
