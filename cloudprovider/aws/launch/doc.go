// Package launch launches instances for claims: it narrows what a claim may be launched on to what one call can ask EC2
// for, puts claims that ask for the same together, and finds out what EC2 sold, refused or lost.
//
// It is part of the provider for EC2. Whose the instances are package ownership knows; it ends none.
package launch
