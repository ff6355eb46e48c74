// Package ownership knows which instance is which NodeClaim's, through every crash: it finds the cluster's instances in
// EC2, tells whose they are, gives out those of a launch, and writes the names of claims on them.
//
// It is part of the provider for EC2. It launches and ends nothing.
package ownership
