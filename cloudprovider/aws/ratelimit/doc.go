// Package ratelimit keeps calls of EC2 below the rate at which it refuses them, and says who goes first.
//
// It is part of the provider for EC2 and calls nobody.
package ratelimit
