package cluster

import (
	"slices"
	"strings"
	"time"
)

// EndOrphansAnnotation on the namespace kube-system, with the time as its value, is a person's word that instances
// which nobody claims may be ended. It is an addition to the contract.
const EndOrphansAnnotation = "tenon.sh/end-orphans"

// Inventory is what the cloud said it runs for us: a list that may lag behind by some seconds.
type Inventory struct {
	// At is when the cloud was asked: what was launched or ended since then is not in it.
	At time.Time
	// Instances by provider id.
	Instances []Instance
}

// Instance is a machine that the cloud runs for a claim.
type Instance struct {
	ProviderID string
	// Claim and ClaimUID name the claim that it was launched for.
	Claim, ClaimUID string
	Created         time.Time
	// Terminating machines are on their way out already.
	Terminating bool
	// Unproven machines carry the cluster's name and nothing that tells the cluster from a namesake.
	Unproven bool
}

// Has reports whether the cloud listed the instance.
func (c *Inventory) Has(providerID string) bool {
	_, found := slices.BinarySearchFunc(c.Instances, providerID, func(i Instance, id string) int {
		return strings.Compare(i.ProviderID, id)
	})
	return found
}
