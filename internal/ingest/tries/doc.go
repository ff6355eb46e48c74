// Package tries finds out which nodes were made in vain, and for whom: it follows each NodeClaim until pods of the
// owners that it was made for have run there for long enough, and each slot of a static pool whose nodes end too soon.
//
// Floor 3: it knows snapshots, has no lock and no clock, and tells nobody by itself.
package tries
