package cloud

import (
	"maps"
	"sort"
	"strconv"
	"strings"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Template is a launch template.
type Template struct {
	ID, Name        string
	Created         time.Time
	VisibleAt       time.Time
	Default, Latest int64
	Versions        map[int64]*TemplateVersion
	Tags            map[string]string // filled in copies
}

// TemplateVersion is one version of a launch template. It never changes.
type TemplateVersion struct {
	Number      int64
	Created     time.Time
	Description string
	Data        *ec2types.RequestLaunchTemplateData
}

// AddTemplate makes a launch template with its first version.
func (w *World) AddTemplate(name, description string, data *ec2types.RequestLaunchTemplateData,
	tags map[string]string) (Template, *wire.Error) {
	defer w.enter()()
	if w.templateByName(name) != nil {
		return Template{}, wire.Errorf("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name "+
			"already in use.")
	}
	if err := checkTags(tags); err != nil {
		return Template{}, err
	}
	now := w.clock.Now()
	t := &Template{
		ID: w.newID("lt"), Name: name, Created: now, VisibleAt: now.Add(w.cfg.Timing.TemplateVisibility),
		Default: 1, Latest: 1,
		Versions: map[int64]*TemplateVersion{1: {Number: 1, Created: now, Description: description, Data: data}},
	}
	w.templates[t.ID] = t
	maps.Copy(w.tags[t.ID], tags)
	return w.copyTemplate(t), nil
}

// AddTemplateVersion adds a version to a template.
func (w *World) AddTemplateVersion(id, name, description string, data *ec2types.RequestLaunchTemplateData) (Template,
	*wire.Error) {
	defer w.enter()()
	t, err := w.template(id, name)
	if err != nil {
		return Template{}, err
	}
	t.Latest++
	t.Versions[t.Latest] = &TemplateVersion{Number: t.Latest, Created: w.clock.Now(), Description: description,
		Data: data}
	return w.copyTemplate(t), nil
}

// RemoveTemplate deletes a template.
func (w *World) RemoveTemplate(id, name string) (Template, *wire.Error) {
	defer w.enter()()
	t, err := w.template(id, name)
	if err != nil {
		return Template{}, err
	}
	gone := w.copyTemplate(t)
	delete(w.templates, t.ID)
	delete(w.tags, t.ID)
	return gone, nil
}

// RemoveTemplateVersion deletes one version, never the default one.
func (w *World) RemoveTemplateVersion(id, name string, number int64) *wire.Error {
	defer w.enter()()
	t, err := w.template(id, name)
	if err != nil {
		return err
	}
	if t.Versions[number] == nil {
		return noSuchVersion(strconv.FormatInt(number, 10))
	}
	if number == t.Default {
		return wire.Errorf("operationNotSupported", "You cannot delete the default version %d of launch template %s.",
			number, t.ID)
	}
	delete(t.Versions, number)
	return nil
}

// Template finds a template by id or, if that is empty, by name.
func (w *World) Template(id, name string) (Template, *wire.Error) {
	defer w.enter()()
	t, err := w.template(id, name)
	if err != nil {
		return Template{}, err
	}
	return w.copyTemplate(t), nil
}

// Templates lists the templates that a describing call sees, by id.
func (w *World) Templates() []Template {
	defer w.enter()()
	all := make([]Template, 0, len(w.templates))
	for _, t := range w.templates {
		if w.shown(t) {
			all = append(all, w.copyTemplate(t))
		}
	}
	sort.Slice(all, func(a, b int) bool { return all[a].ID < all[b].ID })
	return all
}

// Version finds a version by its number, $Latest or $Default.
func (t Template) Version(text string) (*TemplateVersion, *wire.Error) {
	number := t.Default
	switch text {
	case "$Latest":
		number = t.Latest
	case "$Default", "":
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, wire.Errorf("InvalidLaunchTemplateId.VersionMalformed", "Launch template version '%s' is not "+
				"valid.", text)
		}
		number = n
	}
	v := t.Versions[number]
	if v == nil {
		return nil, noSuchVersion(text)
	}
	return v, nil
}

func noSuchVersion(text string) *wire.Error {
	return wire.Errorf("InvalidLaunchTemplateId.VersionNotFound", "Could not find the specified version %s for the "+
		"launch template.", text)
}

func (w *World) shown(t *Template) bool { return !w.clock.Now().Before(t.VisibleAt) }

func (w *World) copyTemplate(t *Template) Template {
	c := *t
	c.Versions = maps.Clone(t.Versions)
	c.Tags = maps.Clone(w.tags[t.ID])
	return c
}

func (w *World) templateByName(name string) *Template {
	for _, t := range w.templates {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// template finds a visible template. The lock is held.
func (w *World) template(id, name string) (*Template, *wire.Error) {
	if id == "" {
		if t := w.templateByName(name); t != nil && w.shown(t) {
			return t, nil
		}
		return nil, wire.Errorf("InvalidLaunchTemplateName.NotFoundException", "The specified launch template, with "+
			"template name %s, does not exist.", name)
	}
	if !strings.HasPrefix(id, "lt-") {
		return nil, wire.Errorf("InvalidLaunchTemplateId.Malformed",
			"The specified launch template ID %s is not valid.", id)
	}
	if t := w.templates[id]; t != nil && w.shown(t) {
		return t, nil
	}
	return nil, wire.Errorf("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, "+
		"does not exist.", id)
}
