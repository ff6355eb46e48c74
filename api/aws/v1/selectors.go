package v1

// SubnetSelectorTerm finds subnets by tags or by id.
// +kubebuilder:validation:XValidation:rule="has(self.tags) != has(self.id)",message="a subnet term needs either tags or id, and not both; split it into two terms to use both"
type SubnetSelectorTerm struct {
	// tags must all be on the subnet. The value * stands for any.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(key, key != '' && self[key] != '')",message="a tag to select by has an empty key or value; write * for any value"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// id of the subnet, such as subnet-0a1b2c3d.
	// +kubebuilder:validation:Pattern=`^subnet-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
}

// SecurityGroupSelectorTerm finds security groups by tags, by id or by name.
// +kubebuilder:validation:XValidation:rule="(has(self.tags) ? 1 : 0) + (has(self.id) ? 1 : 0) + (has(self.name) ? 1 : 0) == 1",message="a security group term needs exactly one of tags, id and name; split it into several terms to use more"
type SecurityGroupSelectorTerm struct {
	// tags must all be on the security group. The value * stands for any.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(key, key != '' && self[key] != '')",message="a tag to select by has an empty key or value; write * for any value"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// id of the security group, such as sg-0a1b2c3d.
	// +kubebuilder:validation:Pattern=`^sg-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`

	// name of the security group, which is not its Name tag. It may contain *.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Name string `json:"name,omitempty"`
}

// CapacityReservationSelectorTerm finds capacity reservations by id, or by tags, owner and match criteria.
// +kubebuilder:validation:XValidation:rule="has(self.tags) || has(self.id) || has(self.instanceMatchCriteria)",message="a capacity reservation term needs id, tags or instanceMatchCriteria"
// +kubebuilder:validation:XValidation:rule="!has(self.id) || !(has(self.tags) || has(self.ownerID) || has(self.instanceMatchCriteria))",message="a capacity reservation term with an id can't have tags, ownerID or instanceMatchCriteria; split it into two terms"
type CapacityReservationSelectorTerm struct {
	// tags must all be on the reservation. The value * stands for any.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(key, key != '' && self[key] != '')",message="a tag to select by has an empty key or value; write * for any value"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// id of the reservation, such as cr-0a1b2c3d.
	// +kubebuilder:validation:Pattern=`^cr-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`

	// ownerID is the account that owns the reservation.
	// +kubebuilder:validation:Pattern=`^[0-9]{12}$`
	// +optional
	OwnerID string `json:"ownerID,omitempty"`

	// instanceMatchCriteria is open for reservations that any matching instance takes from, and targeted for those that
	// only launches which name them do.
	// +kubebuilder:validation:Enum=open;targeted
	// +optional
	InstanceMatchCriteria string `json:"instanceMatchCriteria,omitempty"`
}

// PlacementGroupSelector names a placement group.
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.id)",message="placementGroupSelector needs exactly one of name and id"
type PlacementGroupSelector struct {
	// name of the placement group.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Name *string `json:"name,omitempty"`

	// id of the placement group, such as pg-0a1b2c3d.
	// +kubebuilder:validation:Pattern=`^pg-[0-9a-z]+$`
	// +optional
	ID *string `json:"id,omitempty"`
}

// AMISelectorTerm finds images. What a term says of an image must all hold.
// +kubebuilder:validation:XValidation:rule="has(self.alias) || has(self.tags) || has(self.id) || has(self.name) || has(self.ssmParameter)",message="an AMI term needs one of alias, tags, id, name and ssmParameter"
// +kubebuilder:validation:XValidation:rule="!has(self.id) || !(has(self.alias) || has(self.tags) || has(self.name) || has(self.owner) || has(self.ssmParameter))",message="an AMI term with an id can't have another field; split it into two terms"
// +kubebuilder:validation:XValidation:rule="!has(self.alias) || !(has(self.tags) || has(self.name) || has(self.owner) || has(self.ssmParameter))",message="an AMI term with an alias can't have another field; an alias says all there is to say"
// +kubebuilder:validation:XValidation:rule="!has(self.ssmParameter) || !(has(self.tags) || has(self.name) || has(self.owner))",message="an AMI term with an ssmParameter can't have another field; split it into two terms"
type AMISelectorTerm struct {
	// alias is a family of images that AWS publishes for EKS, and a version: al2, al2023, bottlerocket, windows2019,
	// windows2022 or windows2025, then @, then latest or a release such as v20240807. Nodes of @latest drift when AWS
	// publishes a newer image. The Windows families know @latest only.
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]+@[^@]+$')",message="alias must be a family, an @ and a version, such as al2023@latest"
	// +kubebuilder:validation:XValidation:rule="self.matches('^(al2|al2023|bottlerocket|windows(2019|2022|2025))@')",message="alias has an unknown family; it must be al2, al2023, bottlerocket, windows2019, windows2022 or windows2025"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('windows') || self.endsWith('@latest')",message="alias of a Windows family can't name a version; write @latest"
	// +optional
	Alias string `json:"alias,omitempty"`

	// tags must all be on the image. The value * stands for any.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(key, key != '' && self[key] != '')",message="a tag to select by has an empty key or value; write * for any value"
	// +optional
	Tags map[string]string `json:"tags,omitempty"`

	// id of the image, such as ami-0a1b2c3d.
	// +kubebuilder:validation:Pattern=`^ami-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`

	// name of the image, which is not its Name tag. It may contain *.
	// +optional
	Name string `json:"name,omitempty"`

	// owner of the image: an account's id, self, amazon or aws-marketplace. Not set means self and amazon.
	// +optional
	Owner string `json:"owner,omitempty"`

	// ssmParameter is the name or the ARN of a parameter of Systems Manager that holds the id of the image.
	// +optional
	SSMParameter string `json:"ssmParameter,omitempty"`
}
