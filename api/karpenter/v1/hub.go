package v1

// Hub says that other versions of a NodePool are converted to and from this one. It is the version that is stored.
func (*NodePool) Hub() {}

// Hub says that other versions of a NodeClaim are converted to and from this one. It is the version that is stored.
func (*NodeClaim) Hub() {}
