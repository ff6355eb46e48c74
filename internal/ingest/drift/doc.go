// Package drift keeps what the cloud has said about whether instances are what their NodeClasses ask for, and when to
// ask about each.
//
// Floor 3: it has no lock and no clock, and asks nobody.
package drift
