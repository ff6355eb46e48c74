// Command mutants asks how much the tests would notice: it plants one small fault after the other (a mutant) into the
// packages that are most dangerous, runs the tests, and lists the mutants that survive.
//
// The tree is not touched. All mutants of a package are written into one copy of it, each behind a switch, and the copy
// is given to the compiler as an overlay; so every test binary is built once, and a mutant is turned on by an
// environment variable. A first run of each suite notes which mutants it reaches, and only those that are reached are
// tried. What is known is written down as it is found, so a run that was stopped goes on where it was.
//
// The lists of the field's own tools (gremlins, go-mutesting) compile once for each mutant and run the tests of the
// mutant's own package only. Here most of a package's promises are held by stories and histories in other packages
// (plan, sim), whose binaries take long to build.
//
//	make mutants                                  everything, until it is done
//	make mutants ARGS='-only lifecycle -budget 20m'
//	make mutants ARGS='-show 120'                 what mutant 120 changes
//
// survivors.txt lists the mutants that no test kills, each with the reason why that is right. A run fails if a mutant
// survives that is not listed there.
//
// It stands beside the building: nothing imports it.
package main
