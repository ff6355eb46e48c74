// Package purchase buys nodes for pods that find no room: it chooses domains and groups, has them packed, and verifies
// pod by pod that they get in.
//
// Floor 2: it knows the rules between pods and the market; how nodes are filled best is pack's.
package purchase
