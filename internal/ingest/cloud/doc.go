// Package cloud keeps what the cloud says it runs, when to ask it again, what it says is gone, what was ended because
// nobody claimed it, and which pools and claims are other controllers'.
//
// Floor 3: it takes in answers, has no lock and no clock, and asks nobody.
package cloud
