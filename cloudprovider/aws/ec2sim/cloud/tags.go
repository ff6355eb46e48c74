package cloud

import (
	"maps"
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

const maxTags = 50

// Tags returns a copy of a resource's tags.
func (w *World) Tags(id string) map[string]string {
	defer w.enter()()
	return maps.Clone(w.tags[id])
}

// Tagged is a resource's id with its tags.
type Tagged struct {
	ID   string
	Tags map[string]string
}

// AllTags lists every resource that has tags, by id.
func (w *World) AllTags() []Tagged {
	defer w.enter()()
	var all []Tagged
	for id, tags := range w.tags {
		if i := w.instances[id]; len(tags) > 0 && (i == nil || w.visible(i)) {
			all = append(all, Tagged{ID: id, Tags: maps.Clone(tags)})
		}
	}
	sort.Slice(all, func(a, b int) bool { return all[a].ID < all[b].ID })
	return all
}

// SetTags adds tags to resources, all or none.
func (w *World) SetTags(ids []string, tags map[string]string) *wire.Error {
	defer w.enter()()
	if err := checkTags(tags); err != nil {
		return err
	}
	for _, id := range ids {
		if err := w.mustKnow(id); err != nil {
			return err
		}
		merged := maps.Clone(w.tags[id])
		maps.Copy(merged, tags)
		if countUserTags(merged) > maxTags {
			return wire.Errorf("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
		}
	}
	for _, id := range ids {
		maps.Copy(w.tags[id], tags)
		if i := w.instances[id]; i != nil {
			w.note(InstanceTagsEdited, w.clock.Now(), i)
		}
	}
	return nil
}

// TagMatch names a tag to remove. A nil value takes the tag whatever it says.
type TagMatch struct {
	Key   string
	Value *string
}

// RemoveTags takes tags off resources; no match at all means every tag that a user set.
func (w *World) RemoveTags(ids []string, matches []TagMatch) *wire.Error {
	defer w.enter()()
	for _, id := range ids {
		if err := w.mustKnow(id); err != nil {
			return err
		}
	}
	for _, id := range ids {
		maps.DeleteFunc(w.tags[id], func(key, value string) bool { return takes(matches, key, value) })
		if i := w.instances[id]; i != nil {
			w.note(InstanceTagsEdited, w.clock.Now(), i)
		}
	}
	return nil
}

func takes(matches []TagMatch, key, value string) bool {
	if strings.HasPrefix(key, "aws:") {
		return false
	}
	for _, m := range matches {
		if m.Key == key && (m.Value == nil || *m.Value == value) {
			return true
		}
	}
	return len(matches) == 0
}

// mustKnow is the error for an id that nothing has. Eventual consistency counts: an instance that is not visible yet
// can't be tagged either. The lock is held.
func (w *World) mustKnow(id string) *wire.Error {
	_, ok := w.tags[id]
	if i := w.instances[id]; i != nil && !w.visible(i) {
		ok = false
	}
	if ok {
		return nil
	}
	prefix, _, _ := strings.Cut(id, "-")
	switch prefix {
	case "i":
		return noSuchInstances([]string{id})
	case "lt":
		return wire.Errorf("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, "+
			"does not exist.", id)
	case "subnet":
		return noSuchSubnet(id)
	case "sg":
		return noSuchGroup(id)
	case "ami":
		return noSuchImage(id)
	case "vol":
		return wire.Errorf("InvalidVolume.NotFound", "The volume '%s' does not exist.", id)
	case "eni":
		return wire.Errorf("InvalidNetworkInterfaceID.NotFound", "The networkInterface ID '%s' does not exist", id)
	}
	return wire.Errorf("InvalidID", "The ID '%s' is not valid", id)
}

// checkTags holds tags against EC2's rules.
func checkTags(tags map[string]string) *wire.Error {
	for key, value := range tags {
		switch {
		case key == "":
			return wire.Errorf("InvalidParameterValue", "Tag key cannot be empty.")
		case len(key) > 128:
			return wire.Errorf("InvalidParameterValue", "Tag key exceeds the maximum length of 128 characters.")
		case len(value) > 256:
			return wire.Errorf("InvalidParameterValue", "Tag value exceeds the maximum length of 256 characters.")
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			return wire.Errorf("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
		}
	}
	if countUserTags(tags) > maxTags {
		return wire.Errorf("TagLimitExceeded", "More than %d tags specified", maxTags)
	}
	return nil
}

func countUserTags(tags map[string]string) int {
	n := 0
	for key := range tags {
		if !strings.HasPrefix(key, "aws:") {
			n++
		}
	}
	return n
}

// tagList is a map of tags as the SDK's list, by key.
func tagList(tags map[string]string) []ec2types.Tag {
	list := make([]ec2types.Tag, 0, len(tags))
	for key, value := range tags {
		list = append(list, ec2types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	sort.Slice(list, func(a, b int) bool { return *list[a].Key < *list[b].Key })
	return list
}

// TagMap is the SDK's list of tags as a map.
func TagMap(list []ec2types.Tag) map[string]string {
	tags := make(map[string]string, len(list))
	for _, t := range list {
		tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return tags
}
