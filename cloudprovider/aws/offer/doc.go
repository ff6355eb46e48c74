// Package offer puts together what the NodePools of a class can buy on EC2: types, places, terms and prices.
//
// It is part of the provider for EC2. It asks EC2 what is sold in the region; what a machine is like, what it costs and
// where it can stand it is told.
package offer
