package control

import (
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/faults"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// What somebody asks of the panel must name something: a name that nothing has would change nothing, without a word.

// markets are the capacity types.
func markets() []string {
	return []string{string(cloud.Spot), string(cloud.OnDemand), string(cloud.CapacityBlock),
		string(cloud.Interruptible)}
}

// list joins values of the SDK.
func list[T ~string](values []T) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, string(v))
	}
	return strings.Join(texts, ", ")
}

// some says whether a pattern with stars, or an empty one, names one of them.
func some(pattern string, names []string) bool {
	return pattern == "" || slices.ContainsFunc(names, func(name string) bool {
		ok, err := path.Match(pattern, name)
		return err == nil && ok
	})
}

func noSuchMarket(name string) error {
	return bad("there is no capacity type %q; there are %s", name, strings.Join(markets(), ", "))
}

// noSuchType says what is nearest: the types of the family or, if there is no such family, those with the same first
// letter.
func (p *Panel) noSuchType(name string) error {
	var types, families []string
	family, _, _ := strings.Cut(name, ".")
	for _, t := range p.World.InstanceTypes() {
		of, _, _ := strings.Cut(string(t.InstanceType), ".")
		if of == family {
			types = append(types, string(t.InstanceType))
		}
		if family != "" && of[0] == family[0] && !slices.Contains(families, of) {
			families = append(families, of)
		}
	}
	switch {
	case len(types) > 0:
		return bad("there is no instance type %q; of %s there are %s", name, family, strings.Join(types, ", "))
	case len(families) > 0:
		return bad("there is no instance type %q; families that begin with %s are %s", name, family[:1],
			strings.Join(families, ", "))
	default:
		return bad("there is no instance type %q; one is for instance %s", name,
			p.World.InstanceTypes()[0].InstanceType)
	}
}

// zones are the names of the zones.
func (p *Panel) zones() []string {
	var names []string
	for _, z := range p.World.Zones() {
		names = append(names, z.Name)
	}
	return names
}

func (p *Panel) noSuchZone(name string) error {
	return bad("there is no zone %q; there are %s", name, strings.Join(p.zones(), ", "))
}

func (p *Panel) checkCapacity(in Capacity) error {
	var types []string
	for _, t := range p.World.InstanceTypes() {
		types = append(types, string(t.InstanceType))
	}
	switch {
	case !some(in.Type, types):
		return p.noSuchType(in.Type)
	case !some(in.Zone, p.zones()):
		return p.noSuchZone(in.Zone)
	case !some(in.CapacityType, markets()):
		return noSuchMarket(in.CapacityType)
	case in.Total < 0:
		return bad("%d is not a number of machines", in.Total)
	}
	return nil
}

// checkAction refuses patterns that name no call.
func (p *Panel) checkAction(service, action string) error {
	if p.Actions == nil {
		return nil
	}
	var services, mine []string
	for _, name := range p.Actions() {
		if faults.Names(service, action, name) {
			return nil
		}
		of, what, _ := strings.Cut(name, ":")
		if !slices.Contains(services, of) {
			services = append(services, of)
		}
		if faults.Names(service, "", name) {
			mine = append(mine, what)
		}
	}
	if len(mine) == 0 {
		return bad("there is no service %q; there are %s", service, strings.Join(services, ", "))
	}
	return bad("%s has no action %q; it has %s", service, action, strings.Join(mine, ", "))
}

func (p *Panel) checkPermission(permission string) error {
	if permission == faults.PassRole {
		return nil
	}
	service, action, ok := strings.Cut(permission, ":")
	if !ok && permission != "*" {
		return bad("%q is not a permission such as ec2:CreateFleet or ssm:*", permission)
	}
	return p.checkAction(service, action)
}

func (p *Panel) checkFault(in Fault) error {
	switch {
	case in.Code == "" && in.Delay == 0 && !in.Lose:
		return bad("a fault needs a code, a delay, or an answer to lose")
	case in.Delay < 0:
		return bad("a delay of %s is less than none", in.Delay)
	case in.Status != 0 && (in.Status < 400 || in.Status > 599):
		return bad("%d is not the HTTP status of an error; use 400 to 599", in.Status)
	case in.Times < 0:
		return bad("%d is not a number of times; use 0 for all calls", in.Times)
	case in.Every < 0:
		return bad("it can't be each call number %d; use 1 or more", in.Every)
	}
	return p.checkAction(in.Service, in.Action)
}

func (p *Panel) checkLimit(in faults.Limit) error {
	if in.PerSecond < 0 || in.Burst < 0 {
		return bad("%g calls per second and %g at once: neither may be less than 0", in.PerSecond, in.Burst)
	}
	return p.checkAction(in.Service, in.Action)
}

// ofSubnets adds to the world's answer which subnets there are.
func (p *Panel) ofSubnets(e *wire.Error) error {
	if e == nil || !strings.HasSuffix(e.Code, ".NotFound") {
		return refused(e)
	}
	var ids []string
	for _, s := range p.World.Subnets() {
		ids = append(ids, aws.ToString(s.SubnetId))
	}
	return bad("%s; there are: %s", e.Message, orNone(ids))
}

// restoreSubnet puts a subnet back that was removed.
func (p *Panel) restoreSubnet(id string) error {
	if e := p.World.RestoreSubnet(id); e != nil {
		return bad("no subnet %q was removed; removed are: %s", id, orNone(p.World.RemovedSubnets()))
	}
	return nil
}

// ofImages adds to the world's answer which images there are.
func (p *Panel) ofImages(e *wire.Error) error {
	if e == nil {
		return nil
	}
	var ids []string
	for _, m := range p.World.Images() {
		ids = append(ids, aws.ToString(m.ImageId))
	}
	return bad("%s; there are: %s", e.Message, orNone(ids))
}
