package control

import (
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

const (
	// longestGroupName is what EC2 takes for the name of a placement group.
	longestGroupName = 255
	// mostPartitions are as many as a partition group can have in a zone. It has so many if nobody says how many.
	mostPartitions = 7
)

// Group is a placement group to make.
type Group struct {
	Name     string `json:"name"`
	Strategy string `json:"strategy"` // cluster, partition or spread
	// Partitions is for the strategy partition; 7 if it is zero.
	Partitions int32             `json:"partitions,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
}

// PlacementGroup is a placement group as the panel shows it.
type PlacementGroup struct {
	ID string `json:"id"`
	Group
	// Machines is how many instances are in it that have not ended.
	Machines int `json:"machines"`
}

// PlacementGroups lists the placement groups.
func (p *Panel) PlacementGroups() []PlacementGroup {
	in := map[string]int{}
	for _, i := range p.World.Instances() {
		if i.State != cloud.Terminated {
			in[i.PlacementGroup]++
		}
	}
	all := []PlacementGroup{}
	for _, g := range p.World.PlacementGroups() {
		id := aws.ToString(g.GroupId)
		all = append(all, PlacementGroup{ID: id, Machines: in[id], Group: Group{
			Name: aws.ToString(g.GroupName), Strategy: string(g.Strategy), Partitions: aws.ToInt32(g.PartitionCount),
			Tags: cloud.TagMap(g.Tags)}})
	}
	return all
}

// MakeGroup makes a placement group and returns its id.
func (p *Panel) MakeGroup(in Group) (string, error) {
	strategies := ec2types.PlacementStrategy("").Values()
	strategy := ec2types.PlacementStrategy(in.Strategy)
	parts := strategy == ec2types.PlacementStrategyPartition
	if parts && in.Partitions == 0 {
		in.Partitions = mostPartitions
	}
	switch {
	case in.Name == "" || len(in.Name) > longestGroupName || slices.ContainsFunc([]byte(in.Name), func(b byte) bool {
		return b > '~' || b < ' '
	}):
		return "", bad("%q is not the name of a placement group; it has 1 to %d ASCII characters", in.Name,
			longestGroupName)
	case slices.ContainsFunc(p.World.PlacementGroups(), func(g ec2types.PlacementGroup) bool {
		return aws.ToString(g.GroupName) == in.Name
	}):
		return "", bad("there is a placement group %q already", in.Name)
	case !slices.Contains(strategies, strategy):
		return "", bad("there is no strategy %q; there are %s", in.Strategy, list(strategies))
	case !parts && in.Partitions != 0:
		return "", bad("a group of the strategy %s has no partitions; leave them out, or use partition", in.Strategy)
	case parts && (in.Partitions < 1 || in.Partitions > mostPartitions):
		return "", bad("a group can't have %d partitions; use 1 to %d", in.Partitions, mostPartitions)
	}
	return p.World.AddPlacementGroup(in.Name, strategy, in.Partitions, in.Tags), nil
}

// ofGroups adds to the world's answer, if it knows no such group, which there are.
func (p *Panel) ofGroups(e *wire.Error) error {
	if e == nil || e.Code != "InvalidPlacementGroup.Unknown" {
		return refused(e)
	}
	var names []string
	for _, g := range p.PlacementGroups() {
		names = append(names, g.Name)
	}
	return bad("%s; there are: %s", strings.TrimSuffix(e.Message, "."), orNone(names))
}

func (p *Panel) placementRoutes(on route) {
	on("GET", "placement-groups", func(*http.Request) (any, error) { return p.PlacementGroups(), nil })
	on("POST", "placement-groups", func(r *http.Request) (any, error) {
		in, err := read[Group](r)
		if err != nil {
			return nil, err
		}
		id, err := p.MakeGroup(in)
		return map[string]string{"id": id}, err
	})
	on("DELETE", "placement-groups/{name}", func(r *http.Request) (any, error) {
		return nil, p.ofGroups(p.World.RemovePlacementGroup(r.PathValue("name")))
	})
}
