package v1

import "strings"

// Families of images.
const (
	AMIFamilyAL2          = "AL2"
	AMIFamilyAL2023       = "AL2023"
	AMIFamilyBottlerocket = "Bottlerocket"
	AMIFamilyWindows2019  = "Windows2019"
	AMIFamilyWindows2022  = "Windows2022"
	AMIFamilyWindows2025  = "Windows2025"
	AMIFamilyCustom       = "Custom"
)

// AMIFamilies returns the families that AWS publishes images of: all but Custom.
func AMIFamilies() []string {
	return []string{
		AMIFamilyAL2, AMIFamilyAL2023, AMIFamilyBottlerocket,
		AMIFamilyWindows2019, AMIFamilyWindows2022, AMIFamilyWindows2025,
	}
}

// AliasVersionLatest is the version of an alias that moves on with each release.
const AliasVersionLatest = "latest"

// Alias names images that AWS publishes for EKS.
type Alias struct {
	// Family is one of the AMIFamily values.
	Family string
	// Version is AliasVersionLatest or a release, such as v20240807.
	Version string
}

// ParseAlias reads an alias such as al2023@latest; false if it is none.
func ParseAlias(text string) (Alias, bool) {
	family, version, ok := strings.Cut(text, "@")
	if !ok || version == "" {
		return Alias{}, false
	}
	for _, known := range AMIFamilies() {
		if strings.ToLower(known) == family {
			return Alias{Family: known, Version: version}, true
		}
	}
	return Alias{}, false
}

// Alias returns the alias that the class selects its images by; false if it selects them otherwise.
func (c *EC2NodeClass) Alias() (Alias, bool) {
	for _, term := range c.Spec.AMISelectorTerms {
		if term.Alias != "" {
			return ParseAlias(term.Alias)
		}
	}
	return Alias{}, false
}

// AMIFamily is the family of the class's images: the one that it names, else its alias's, else Custom.
func (c *EC2NodeClass) AMIFamily() string {
	if c.Spec.AMIFamily != nil {
		return *c.Spec.AMIFamily
	}
	if alias, ok := c.Alias(); ok {
		return alias.Family
	}
	return AMIFamilyCustom
}
