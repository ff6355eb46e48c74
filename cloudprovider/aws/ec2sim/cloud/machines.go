package cloud

import (
	"slices"
	"sort"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// InstanceTypes lists what can be bought, by name.
func (w *World) InstanceTypes() []ec2types.InstanceTypeInfo {
	all := slices.Clone(w.cfg.Types)
	sort.Slice(all, func(a, b int) bool { return all[a].InstanceType < all[b].InstanceType })
	return all
}

// InstanceType finds a type by its name.
func (w *World) InstanceType(name string) (ec2types.InstanceTypeInfo, bool) {
	info := w.types[name]
	if info == nil {
		return ec2types.InstanceTypeInfo{}, false
	}
	return *info, true
}

// Sold says whether a type is offered in a zone.
func (w *World) Sold(kind, zone string) bool { return w.types[kind] != nil && w.sold(kind, zone) }

func (w *World) sold(kind, zone string) bool {
	zones, limited := w.cfg.TypeZones[kind]
	return !limited || slices.Contains(zones, zone)
}

// sells says whether a type can be bought in a market; a type that lists no markets can be in all.
func sells(info *ec2types.InstanceTypeInfo, class ec2types.UsageClassType) bool {
	return info != nil && (len(info.SupportedUsageClasses) == 0 || slices.Contains(info.SupportedUsageClasses, class))
}
