package v1

// Hub says that other versions of an EC2NodeClass are converted to and from this one. It is the version that is stored.
func (*EC2NodeClass) Hub() {}
