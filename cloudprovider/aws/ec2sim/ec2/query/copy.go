package query

import "reflect"

// Fill sets what is not set in the structure that to points to from the members of the same name of the structure that
// from points to. EC2 says the same things in several types (a launch template's request, its response, a run of
// instances); their members have the same names.
func Fill(to, from any) {
	fill(reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem())
}

func fill(to, from reflect.Value) {
	for i := range to.NumField() {
		field := to.Type().Field(i)
		source := from.FieldByName(field.Name)
		if !field.IsExported() || !source.IsValid() || source.IsZero() || !to.Field(i).IsZero() {
			continue
		}
		assign(to.Field(i), source)
	}
}

// assign copies a value into one of another type with the same shape. Shapes that don't fit are left unset.
func assign(to, from reflect.Value) {
	switch {
	case from.Type().AssignableTo(to.Type()):
		to.Set(from)
	case from.Kind() == reflect.Pointer && to.Kind() == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		assign(to.Elem(), from.Elem())
	case from.Kind() == reflect.Pointer && !from.IsNil():
		assign(to, from.Elem())
	case from.Kind() == reflect.Struct && to.Kind() == reflect.Struct:
		fill(to, from)
	case from.Kind() == reflect.Slice && to.Kind() == reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			assign(to.Index(i), from.Index(i))
		}
	case from.Kind() == to.Kind() && from.Type().ConvertibleTo(to.Type()):
		to.Set(from.Convert(to.Type()))
	}
}
