package ec2sim_test

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/cloud"
)

// TestSubnetFilters asks for subnets as node classes do.
func TestSubnetFilters(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		filters []ec2types.Filter
		want    int
	}{
		"all":                  {nil, 6},
		"by tag":               {[]ec2types.Filter{filter("tag:karpenter.sh/discovery", "lab")}, 3},
		"by any value":         {[]ec2types.Filter{filter("tag:karpenter.sh/discovery", "*")}, 3},
		"by the tag's key":     {[]ec2types.Filter{filter("tag-key", "kubernetes.io/role/elb")}, 3},
		"by a pattern":         {[]ec2types.Filter{filter("tag:Name", "lab/p*ate-us-west-2?")}, 3},
		"stars that are stars": {[]ec2types.Filter{filter("tag:Name", `lab/\*`)}, 0},
		"one of two values":    {[]ec2types.Filter{filter("availability-zone", "us-west-2a", "us-west-2c")}, 4},
		"both filters": {[]ec2types.Filter{filter("availability-zone-id", "usw2-az1"),
			filter("tag:karpenter.sh/discovery", "lab")}, 1},
		"by network": {[]ec2types.Filter{filter("vpc-id", b.net.VPC), filter("map-public-ip-on-launch",
			"true")}, 3},
		"nobody's tag":      {[]ec2types.Filter{filter("tag:team", "*")}, 0},
		"another cluster's": {[]ec2types.Filter{filter("tag:karpenter.sh/discovery", "la")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := b.client.DescribeSubnets(b.ctx, &sdk.DescribeSubnetsInput{Filters: c.filters})
			if err != nil || len(out.Subnets) != c.want {
				t.Errorf("got %d, want %d, %v", len(out.Subnets), c.want, err)
			}
		})
	}
	_, err := b.client.DescribeSubnets(b.ctx,
		&sdk.DescribeSubnetsInput{Filters: []ec2types.Filter{filter("colour", "green")}})
	b.wantCode(err, "InvalidParameterValue")
	b.world.RemoveSubnet(b.net.Private[0])
	_, err = b.client.DescribeSubnets(b.ctx, &sdk.DescribeSubnetsInput{SubnetIds: []string{b.net.Private[0]}})
	b.wantCode(err, "InvalidSubnetID.NotFound")
}

// TestNetworkDescribes reads groups, networks and zones.
func TestNetworkDescribes(t *testing.T) {
	b := newBench(t)
	groups, err := b.client.DescribeSecurityGroups(b.ctx,
		&sdk.DescribeSecurityGroupsInput{Filters: []ec2types.Filter{filter("group-name", "eks-*"),
			filter("vpc-id", b.net.VPC)}})
	if err != nil || len(groups.SecurityGroups) != 1 || *groups.SecurityGroups[0].GroupId != b.net.SecurityGroup {
		t.Errorf("groups: %+v, %v", groups, err)
	}
	_, err = b.client.DescribeSecurityGroups(b.ctx, &sdk.DescribeSecurityGroupsInput{GroupIds: []string{"sg-none"}})
	b.wantCode(err, "InvalidGroup.NotFound")
	vpcs, err := b.client.DescribeVpcs(b.ctx, &sdk.DescribeVpcsInput{VpcIds: []string{b.net.VPC}})
	if err != nil || *vpcs.Vpcs[0].CidrBlock != "10.0.0.0/16" || tagOf(vpcs.Vpcs[0].Tags, "Name") != "lab/VPC" {
		t.Errorf("networks: %+v, %v", vpcs, err)
	}
	zones, err := b.client.DescribeAvailabilityZones(b.ctx,
		&sdk.DescribeAvailabilityZonesInput{Filters: []ec2types.Filter{filter("zone-id", "usw2-az2")}})
	if err != nil || len(zones.AvailabilityZones) != 1 || *zones.AvailabilityZones[0].ZoneName != "us-west-2b" {
		t.Errorf("zones: %+v, %v", zones, err)
	}
}

// TestTypes pages through everything that is sold.
func TestTypes(t *testing.T) {
	b := newBench(t)
	seen := map[ec2types.InstanceType]bool{}
	pages := sdk.NewDescribeInstanceTypesPaginator(b.client, &sdk.DescribeInstanceTypesInput{Filters: []ec2types.Filter{
		filter("supported-virtualization-type", "hvm"), filter("processor-info.supported-architecture", "x86_64",
			"arm64")}})
	calls := 0
	for pages.HasMorePages() {
		out, err := pages.NextPage(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		calls++
		for _, i := range out.InstanceTypes {
			if seen[i.InstanceType] {
				t.Errorf("%s came twice", i.InstanceType)
			}
			seen[i.InstanceType] = true
		}
	}
	if len(seen) < 500 || calls != (len(seen)+99)/100 {
		t.Errorf("%d types came in %d pages", len(seen), calls)
	}
	one, err := b.client.DescribeInstanceTypes(b.ctx,
		&sdk.DescribeInstanceTypesInput{InstanceTypes: []ec2types.InstanceType{"m5.large"}})
	if err != nil || *one.InstanceTypes[0].VCpuInfo.DefaultVCpus != 2 ||
		*one.InstanceTypes[0].MemoryInfo.SizeInMiB != 8192 {
		t.Errorf("m5.large is %+v, %v", one, err)
	}
	_, err = b.client.DescribeInstanceTypes(b.ctx,
		&sdk.DescribeInstanceTypesInput{InstanceTypes: []ec2types.InstanceType{"m5.gigantic"}})
	b.wantCode(err, "InvalidInstanceType")
	_, err = b.client.DescribeInstanceTypes(b.ctx, &sdk.DescribeInstanceTypesInput{MaxResults: aws.Int32(1000)})
	b.wantCode(err, "InvalidParameterValue")
	_, err = b.client.DescribeInstanceTypes(b.ctx, &sdk.DescribeInstanceTypesInput{NextToken: aws.String("nonsense")})
	b.wantCode(err, "InvalidNextToken")
}

// TestOfferings names zones, their ids or the region, and leaves out a zone that does not sell a type.
func TestOfferings(t *testing.T) {
	b := newBench(t, func(o *ec2sim.Options) {
		o.Config.Types = []ec2types.InstanceTypeInfo{{InstanceType: "m5.large"}, {InstanceType: "c5.large"}}
		o.Config.TypeZones = map[string][]string{"c5.large": {"us-west-2b"}}
	})
	for kind, want := range map[ec2types.LocationType]string{
		ec2types.LocationTypeAvailabilityZone: "c5.large/us-west-2b m5.large/us-west-2a m5.large/us-west-2b " +
			"m5.large/us-west-2c",
		ec2types.LocationTypeAvailabilityZoneId: "c5.large/usw2-az2 m5.large/usw2-az1 m5.large/usw2-az2 " +
			"m5.large/usw2-az3",
		ec2types.LocationTypeRegion: "c5.large/us-west-2 m5.large/us-west-2",
		"":                          "c5.large/us-west-2 m5.large/us-west-2",
	} {
		out, err := b.client.DescribeInstanceTypeOfferings(b.ctx,
			&sdk.DescribeInstanceTypeOfferingsInput{LocationType: kind})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range out.InstanceTypeOfferings {
			got = append(got, fmt.Sprintf("%s/%s", o.InstanceType, *o.Location))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %s, want %s", kind, got, want)
		}
	}
	b.template()
	if got := fleetText(b.mustFleet(b.fleet(onDemand, 1,
		b.override("c5.large", 0)))); got != "!InvalidFleetConfiguration:c5.large/a" {
		t.Errorf("a type that the zone does not sell gave %s", got)
	}
}

// TestInstanceFilters asks as a provider does that looks for its own machines, page by page.
func TestInstanceFilters(t *testing.T) {
	b := newBench(t)
	b.template()
	b.mustFleet(b.fleet(onDemand, 12, b.override("m5.large", 0)))
	b.clock.step(time.Minute)
	gone := b.launch(spot)
	if _, err := b.world.Terminate([]string{gone}); err != nil {
		t.Fatal(err)
	}
	in := &sdk.DescribeInstancesInput{MaxResults: aws.Int32(5), Filters: []ec2types.Filter{
		filter("instance-state-name", "pending", "running"), filter("tag-key", "from"), filter("tag:from", "fleet")}}
	var ids []string
	pages := sdk.NewDescribeInstancesPaginator(b.client, in)
	calls := 0
	for pages.HasMorePages() {
		out, err := pages.NextPage(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		calls++
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				ids = append(ids, *i.InstanceId)
			}
		}
	}
	if len(ids) != 12 || calls != 3 {
		t.Errorf("%d instances came in %d pages", len(ids), calls)
	}
	for name, want := range map[string]int{"instance-lifecycle=spot": 1, "instance-state-code=16": 12,
		"instance-type=m5.*": 13, "private-dns-name=ip-*": 13, "subnet-id=" + b.net.Private[1]: 0} {
		key, value, _ := strings.Cut(name, "=")
		out, err := b.client.DescribeInstances(b.ctx,
			&sdk.DescribeInstancesInput{Filters: []ec2types.Filter{filter(key, value)}})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, r := range out.Reservations {
			n += len(r.Instances)
		}
		if n != want {
			t.Errorf("%s: got %d, want %d", name, n, want)
		}
	}
	_, err := b.client.DescribeInstances(b.ctx, &sdk.DescribeInstancesInput{InstanceIds: ids, MaxResults: aws.Int32(5)})
	b.wantCode(err, "InvalidParameterCombination")
	_, err = b.client.DescribeInstances(b.ctx, &sdk.DescribeInstancesInput{InstanceIds: []string{"m-1"}})
	b.wantCode(err, "InvalidInstanceID.Malformed")
	_, err = b.client.DescribeInstances(b.ctx,
		&sdk.DescribeInstancesInput{Filters: []ec2types.Filter{filter("instance-id", make([]string, 201)...)}})
	b.wantCode(err, "FilterLimitExceeded")
}

// TestImages looks for images by name, owner and tag; deprecated ones show only to those who look for them.
func TestImages(t *testing.T) {
	b := newBench(t)
	amazon := func(name string) string {
		return b.world.AddImage(ec2types.Image{Name: aws.String(name), OwnerId: aws.String("602401143452"),
			ImageOwnerAlias: aws.String("amazon")})
	}
	old, fresh := amazon("amazon-eks-node-1.30-v1"), amazon("amazon-eks-node-1.30-v2")
	hidden := b.world.AddImage(ec2types.Image{Name: aws.String("secret"), OwnerId: aws.String("111122223333"),
		Public: aws.Bool(false)})
	if err := b.world.DeprecateImage(old, b.clock.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	names := func(in *sdk.DescribeImagesInput) string {
		out, err := b.client.DescribeImages(b.ctx, in)
		if err != nil {
			return code(err)
		}
		var all []string
		for _, m := range out.Images {
			all = append(all, *m.Name)
		}
		sort.Strings(all)
		return strings.Join(all, " ")
	}
	eks := []ec2types.Filter{filter("name", "amazon-eks-node-*"), filter("architecture", "x86_64")}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	check("both", names(&sdk.DescribeImagesInput{Owners: []string{"amazon"}, Filters: eks}),
		"amazon-eks-node-1.30-v1 amazon-eks-node-1.30-v2")
	b.clock.step(2 * time.Hour)
	check("the fresh one", names(&sdk.DescribeImagesInput{Owners: []string{"602401143452"}, Filters: eks}),
		"amazon-eks-node-1.30-v2")
	check("deprecated too", names(&sdk.DescribeImagesInput{IncludeDeprecated: aws.Bool(true), Filters: eks}),
		"amazon-eks-node-1.30-v1 amazon-eks-node-1.30-v2")
	check("by id", names(&sdk.DescribeImagesInput{ImageIds: []string{old}}), "amazon-eks-node-1.30-v1")
	check("my own", names(&sdk.DescribeImagesInput{Owners: []string{"self"}}), "node-arm node-x86")
	check("somebody's secret", names(&sdk.DescribeImagesInput{ImageIds: []string{hidden}}), "")
	b.world.RemoveImage(fresh)
	check("gone", names(&sdk.DescribeImagesInput{ImageIds: []string{fresh}}), "InvalidAMIID.NotFound")
}

// TestSpotPrices reads the history: what holds now, and what held before.
func TestSpotPrices(t *testing.T) {
	b := newBench(t)
	start := b.clock.Now()
	b.clock.step(time.Hour)
	b.world.SetSpotPrice("m5.large", "us-west-2a", 0.05)
	b.clock.step(time.Hour)
	b.world.SetSpotPrice("m5.large", "us-west-2a", 0.07)
	b.clock.step(time.Hour)
	prices := func(from time.Time) []string {
		out, err := b.client.DescribeSpotPriceHistory(b.ctx, &sdk.DescribeSpotPriceHistoryInput{StartTime: &from,
			InstanceTypes:       []ec2types.InstanceType{"m5.large"},
			ProductDescriptions: []string{"Linux/UNIX"}, Filters: []ec2types.Filter{filter("availability-zone",
				"us-west-2a")}})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, p := range out.SpotPriceHistory {
			all = append(all, *p.SpotPrice)
		}
		return all
	}
	if got := fmt.Sprint(prices(b.clock.Now())); got != "[0.070000]" {
		t.Errorf("now it is %s", got)
	}
	if got := prices(start); len(got) != 3 || got[0] != "0.070000" || got[1] != "0.050000" {
		t.Errorf("since the start it was %s", got)
	}
	pages := sdk.NewDescribeSpotPriceHistoryPaginator(b.client,
		&sdk.DescribeSpotPriceHistoryInput{StartTime: aws.Time(b.clock.Now()),
			ProductDescriptions: []string{"Linux/UNIX"}})
	pools := map[string]bool{}
	for pages.HasMorePages() {
		out, err := pages.NextPage(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range out.SpotPriceHistory {
			pool := fmt.Sprintf("%s/%s", p.InstanceType, *p.AvailabilityZone)
			if pools[pool] {
				t.Errorf("%s has two prices now", pool)
			}
			pools[pool] = true
		}
	}
	if len(pools) < 1500 {
		t.Errorf("only %d pools have a price", len(pools))
	}
}

// TestTemplates makes versions, finds templates by tag and deletes them.
func TestTemplates(t *testing.T) {
	b := newBench(t)
	made, err := b.client.CreateLaunchTemplate(b.ctx,
		&sdk.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(templateName), ClientToken: aws.String("one"),
			LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: aws.String(b.image),
				KeyName: aws.String("key")},
			TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeLaunchTemplate,
				Tags: []ec2types.Tag{{Key: aws.String("class"), Value: aws.String("default")}}}}})
	if err != nil {
		t.Fatal(err)
	}
	id := made.LaunchTemplate.LaunchTemplateId
	_, err = b.client.CreateLaunchTemplate(b.ctx,
		&sdk.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(templateName),
			LaunchTemplateData: &ec2types.RequestLaunchTemplateData{}})
	b.wantCode(err, "InvalidLaunchTemplateName.AlreadyExistsException")
	_, err = b.client.CreateLaunchTemplate(b.ctx, &sdk.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("big"),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{UserData: aws.String(strings.Repeat("QUJD", 6000))}})
	b.wantCode(err, "InvalidUserData.Malformed")
	_, err = b.client.CreateLaunchTemplateVersion(b.ctx, &sdk.CreateLaunchTemplateVersionInput{LaunchTemplateId: id,
		SourceVersion:      aws.String("1"),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: aws.String(b.arm)}})
	if err != nil {
		t.Fatal(err)
	}
	versions, err := b.client.DescribeLaunchTemplateVersions(b.ctx,
		&sdk.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: aws.String(templateName),
			Versions: []string{"$Latest"}})
	if err != nil || *versions.LaunchTemplateVersions[0].LaunchTemplateData.ImageId != b.arm ||
		*versions.LaunchTemplateVersions[0].LaunchTemplateData.KeyName != "key" {
		t.Errorf("the second version is %+v, %v", versions, err)
	}
	deleted, err := b.client.DeleteLaunchTemplateVersions(b.ctx,
		&sdk.DeleteLaunchTemplateVersionsInput{LaunchTemplateId: id, Versions: []string{"1", "2", "3"}})
	if err != nil || len(deleted.SuccessfullyDeletedLaunchTemplateVersions) != 1 ||
		len(deleted.UnsuccessfullyDeletedLaunchTemplateVersions) != 2 {
		t.Errorf("deleting the default, the second and none gave %+v, %v", deleted, err)
	}
	found, err := b.client.DescribeLaunchTemplates(b.ctx,
		&sdk.DescribeLaunchTemplatesInput{Filters: []ec2types.Filter{filter("tag:class", "default")}})
	if err != nil || len(found.LaunchTemplates) != 1 || *found.LaunchTemplates[0].LaunchTemplateId != *id {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err = b.client.DeleteLaunchTemplate(b.ctx,
		&sdk.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(templateName)}); err != nil {
		t.Fatal(err)
	}
	_, err = b.client.DescribeLaunchTemplates(b.ctx,
		&sdk.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{templateName}})
	b.wantCode(err, "InvalidLaunchTemplateName.NotFoundException")
}

// TestTags puts tags on and takes them off, all or none.
func TestTags(t *testing.T) {
	b := newBench(t)
	b.template()
	id := b.launch(onDemand)
	tag := func(ids []string, pairs ...string) error {
		var tags []ec2types.Tag
		for n := 0; n < len(pairs); n += 2 {
			tags = append(tags, ec2types.Tag{Key: aws.String(pairs[n]), Value: aws.String(pairs[n+1])})
		}
		_, err := b.client.CreateTags(b.ctx, &sdk.CreateTagsInput{Resources: ids, Tags: tags})
		return err
	}
	if err := tag([]string{id, b.net.VPC}, "Name", "node", "from", "me"); err != nil {
		t.Fatal(err)
	}
	b.wantCode(tag([]string{id, "i-00000000000000000"}, "half", "done"), "InvalidInstanceID.NotFound")
	b.wantCode(tag([]string{id}, "aws:mine", "no"), "InvalidParameterValue")
	var many []string
	for n := range 50 {
		many = append(many, fmt.Sprintf("key-%d", n), "x")
	}
	b.wantCode(tag([]string{id}, many...), "TagLimitExceeded")
	_, err := b.client.DeleteTags(b.ctx, &sdk.DeleteTagsInput{Resources: []string{id},
		Tags: []ec2types.Tag{{Key: aws.String("Name")}, {Key: aws.String("from"), Value: aws.String("another")}}})
	if err != nil {
		t.Fatal(err)
	}
	if tags := cloud.TagMap(b.describe(id).Tags); tags["from"] != "me" || tags["Name"] != "" || tags["half"] != "" ||
		tags["aws:ec2:fleet-id"] == "" {
		t.Errorf("the tags are %v", tags)
	}
	out, err := b.client.DescribeTags(b.ctx, &sdk.DescribeTagsInput{Filters: []ec2types.Filter{filter("resource-type",
		"vpc"), filter("key", "Name")}})
	if err != nil || len(out.Tags) != 1 || *out.Tags[0].Value != "node" {
		t.Errorf("described %+v, %v", out, err)
	}
}
