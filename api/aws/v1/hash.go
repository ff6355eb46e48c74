package v1

import (
	"fmt"
	"strconv"

	"github.com/mitchellh/hashstructure/v2"
)

// Hash is what the hash annotation of the class should be. caBundle is the certificate of the cluster that nodes are
// told to trust: nodes that trust another must be replaced too.
//
// The value is part of the contract: a cluster that was run by Karpenter carries hashes that Karpenter computed, and if
// ours differed every node would be replaced on the day that Tenon takes over. So it is computed in the same way
// (version v6): by the same library with the same options over the same parts, from types whose names and fields are
// the ones that go into it.
func (c *EC2NodeClass) Hash(caBundle string) (string, error) {
	parts := []any{c.Spec, c.AMIFamily(), caBundle, c.Spec.Kubelet.String()}
	hash, err := hashstructure.Hash(parts, hashstructure.FormatV2,
		&hashstructure.HashOptions{SlicesAsSets: true, IgnoreZeroValue: true, ZeroNil: true})
	if err != nil {
		return "", fmt.Errorf("hashing the spec of EC2NodeClass %s: %w", c.Name, err)
	}
	return strconv.FormatUint(hash, 10), nil
}
